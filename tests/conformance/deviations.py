"""Cases that this build knowingly does not meet, with the reason for each."""

import tomllib
from pathlib import Path

from tests.conformance.errors import CaseFileError

FILE = Path(__file__).with_name("deviations.toml")


def read(path: Path = FILE) -> dict[str, str]:
    """Reasons by case id. Raises CaseFileError when an entry has none."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("deviations", {})
    for case, reason in entries.items():
        if not isinstance(reason, str) or not reason.strip():
            raise CaseFileError(f"{path}: the deviation {case} needs a reason")
    return dict(entries)
