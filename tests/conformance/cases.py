"""Case files: which there are, their format, and the cases in them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.conformance.errors import CaseFileError

ROOT = Path(__file__).resolve().parents[2]

PROVIDES = frozenset(
    {
        "crash",
        "scan",
        "knowledge",
        "guard",
        "retry",
        "decisions",
        "models",
        "effects",
        "send",
        "gates",
        "rules",
        "autonomy",
        "intents",
        "rate_limit",
    }
)
"""Capabilities of this build (`conventions.needs` of a case file); cases that need others are skipped."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario. Members that are remarks for readers are left out; `actions` and `given` are those of pipeline
    cases, `publish` to `pace` those of dispatcher cases.
    """

    id: str
    actions: list[dict[str, Any]] = []
    expect: dict[str, Any]
    group: str = "other"
    tier: str = "N"
    given: dict[str, Any] = {}
    needs: tuple[str, ...] = ()
    scored: bool = False
    manual: bool = False
    format: str = "pipeline"
    publish: list[dict[str, Any]] = []
    events: dict[str, dict[str, Any]] = {}
    steps: list[dict[str, Any]] = []
    agents: dict[str, dict[str, Any]] = {}
    config: dict[str, Any] = {}
    config_type: str = "AgentConfig"
    config_invalid: bool = False
    duplicate_event_classes: tuple[str, ...] = ()
    pace: str = "idle"


class CaseFile(msgspec.Struct, frozen=True):
    """A file's cases and the name of their format."""

    path: Path
    format: str
    cases: tuple[Case, ...]


def _is_pipeline(document: dict[str, Any]) -> bool:
    return all(isinstance(c, dict) and "actions" in c and "expect" in c for c in document["cases"])


def _is_dispatcher(document: dict[str, Any]) -> bool:
    return all(isinstance(c, dict) and "steps" in c and "publish" in c for c in document["cases"])


FORMATS: dict[str, Callable[[dict[str, Any]], bool]] = {"pipeline": _is_pipeline, "dispatcher": _is_dispatcher}
"""How the formats are told apart."""


SHARED = ("pipeline-cases.json", "dispatcher-cases.json")


def default_files() -> list[Path]:
    """The files of `WAYBOOK_CASES` (separated like PATH), else the shared cases beside the repository."""
    named = os.environ.get("WAYBOOK_CASES")
    if named:
        return [Path(p) for p in named.split(os.pathsep) if p]
    shared = ROOT.parent / "shared" / "cases"
    return [file for name in SHARED if (file := shared / name).is_file()]


def load(path: Path) -> CaseFile:
    """Reads a case file. Raises CaseFileError for one that is missing, broken, or of an unknown format."""
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise CaseFileError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise CaseFileError(f"{path}: is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list) or not document["cases"]:
        raise CaseFileError(f"{path}: is not a case file: an object with a list `cases` is expected")
    name = next((name for name, fits in FORMATS.items() if fits(document)), None)
    if name is None:
        known = ", ".join(FORMATS)
        raise CaseFileError(f"{path}: its cases have an unknown format; this runner knows {known}")
    return CaseFile(path, name, tuple(_cases(path, document, name)))


def _cases(path: Path, document: dict[str, Any], name: str) -> list[Case]:
    version = document.get("schema_version", document.get("format_version", 2))
    if version != 2:
        raise CaseFileError(f"{path}: schema_version {version!r} is not 2, the one that this runner knows")
    try:
        cases = msgspec.convert([{**c, "format": name} for c in document["cases"]], list[Case])
    except msgspec.ValidationError as error:
        raise CaseFileError(f"{path}: a case is not well formed: {error}") from error
    return cases


INTERPRETED = ("pipeline", "dispatcher")
"""Formats whose cases this build carries out (`test_cases.INTERPRETERS` says who does)."""


def collect(paths: Sequence[Path], interpreters: Sequence[str] = INTERPRETED) -> list[Case]:
    """The cases of all files, in order. Raises CaseFileError also for a repeated id."""
    found: dict[str, Case] = {}
    for path in paths:
        file = load(path)
        if file.format not in interpreters:
            known = ", ".join(interpreters)
            raise CaseFileError(f"{path}: cases of the format {file.format} are not interpreted yet, only {known}")
        for case in file.cases:
            if found.setdefault(case.id, case) is not case:
                raise CaseFileError(f"{path}: the id {case.id} was used before")
    return list(found.values())


def why_skipped(case: Case, provides: frozenset[str] = PROVIDES) -> str | None:
    """Why this build does not run the case, or None."""
    if case.manual:
        return "manual: not for an automatic runner"
    missing = [need for need in case.needs if need not in provides]
    if case.tier == "L" and "later" not in missing and "later" not in provides:
        missing.append("later")
    return f"needs {', '.join(missing)}" if missing else None
