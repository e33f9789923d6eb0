"""An exclusive lock that the operating system gives back when its last holder has died."""

import errno
import fcntl
import os
from pathlib import Path

from waybook.adapters.embedded.errors import DataDirectoryUnusable


class FileLock:
    """flock on a file. A child that inherits `descriptor` holds the lock as long as it lives.

    The file stays where it is: removing it would let two holders lock two files of one name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        if self._descriptor is None:
            raise RuntimeError(f"{self.path} is not locked here")
        return self._descriptor

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self, *, shared: bool = False) -> bool:
        """Whether the lock was free. Raises DataDirectoryUnusable where files cannot be locked."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryUnusable(f"{self.path} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise DataDirectoryUnusable(
                f"{self.path} cannot be locked ({error.strerror}); choose a folder on a local disk"
            ) from error
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Gives up this process' share of it; a child that inherited it still holds it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
