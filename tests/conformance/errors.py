"""What can go wrong with a case file or a case."""


class CaseFileError(Exception):
    """A case file cannot be used; the message names the file and the way out."""


class Unsupported(Exception):
    """A case uses a word that the runner does not interpret; the case fails, it is never passed over."""


class Mismatch(AssertionError):
    """What a case expects does not hold. `differences` are (key of `expect`, what is wrong)."""

    def __init__(self, differences: list[tuple[str, str]]) -> None:
        super().__init__("\n".join(f"{key}: {text}" for key, text in differences))
        self.differences = differences
