"""Whom PostgreSQL runs under: it refuses to run as root."""

import os
import pwd
import subprocess
from pathlib import Path

import msgspec

from waybook.adapters.embedded.errors import DataDirectoryUnusable, ServerStartFailed

_CANDIDATES = ("waybook", "postgres", "nobody")


class User(msgspec.Struct, frozen=True):
    """A user of this machine without rights."""

    name: str
    uid: int
    gid: int


def server_user(folder: Path) -> User | None:
    """Whom to run a server under whose data is in `folder`: None (the own user), unless that is root.

    As root it is the owner of `folder` where there is one already, else the first of waybook, postgres and nobody that
    this machine has. Raises ServerStartFailed when it has none of them.
    """
    if os.geteuid() != 0:
        return None
    if folder.exists() and (owner := folder.stat().st_uid) != 0:
        try:
            return _as_user(pwd.getpwuid(owner))
        except KeyError as error:
            raise ServerStartFailed(f"{folder} belongs to user {owner}, whom this machine does not know") from error
    for name in _CANDIDATES:
        try:
            return _as_user(pwd.getpwnam(name))
        except KeyError:
            continue
    raise ServerStartFailed(
        "PostgreSQL does not run as root, and there is none of the users " + ", ".join(_CANDIDATES) + "; "
        "make one with `useradd --system waybook`, or set WAYBOOK_DATABASE_URL"
    )


def can_enter(user: User, path: Path) -> bool:
    """Whether `user` may enter the folder, or run the program, at `path`: the system itself is asked."""
    try:
        asked = subprocess.run(
            ["test", "-x", str(path)],
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise ServerStartFailed(
            f"PostgreSQL does not run as root, and {user.name} cannot be become here ({error.strerror}); "
            "run Waybook as another user, or set WAYBOOK_DATABASE_URL"
        ) from error
    return asked.returncode == 0


def check_reachable(user: User, folder: Path) -> None:
    """Raises DataDirectoryUnusable, naming the folder that keeps `user` out of `folder`."""
    if can_enter(user, folder):
        return
    barrier = next(path for path in (*reversed(folder.parents), folder) if not can_enter(user, path))
    raise DataDirectoryUnusable(
        f"PostgreSQL, which runs as {user.name} because you are root, cannot reach {folder}: {barrier} is closed to "
        "others; choose another folder with --data-dir or WAYBOOK_DATA_DIR, for example under /var/lib, "
        f"or open it with `chmod o+x {barrier}`"
    )


def _as_user(entry: pwd.struct_passwd) -> User:
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid)
