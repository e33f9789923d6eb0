"""Cases that this build knowingly does not meet, with the reason for each, and what exactly differs."""

import tomllib
from pathlib import Path

import msgspec
from tests.conformance.errors import CaseFileError, Mismatch

FILE = Path(__file__).with_name("deviations.toml")


class Deviation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a case does not hold, and the differences (`key: text`) that are known; any other one is a failure."""

    reason: str
    differs: tuple[str, ...]

    def explains(self, error: Exception) -> bool:
        """Whether `error` says what is known of the case and no more."""
        told = {f"{key}: {text}" for key, text in error.differences} if isinstance(error, Mismatch) else set()
        return told == set(self.differs)


def read(path: Path = FILE) -> dict[str, Deviation]:
    """Deviations by case id. Raises CaseFileError when an entry lacks its reason or what differs."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("deviations", {})
    found: dict[str, Deviation] = {}
    for case, entry in entries.items():
        try:
            found[case] = msgspec.convert(entry, Deviation)
        except msgspec.ValidationError as error:
            raise CaseFileError(f"{path}: the deviation {case} needs `reason` and `differs`: {error}") from error
        if not found[case].reason.strip() or not found[case].differs:
            raise CaseFileError(f"{path}: the deviation {case} needs a `reason` and what `differs`")
    return found
