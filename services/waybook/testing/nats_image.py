"""An image of the nats-server that is installed, for tests in containers where no other is there. Nothing is pulled."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import docker
import msgspec

from waybook.adapters.embedded.programs import nats_server
from waybook.events.errors import TerminalError
from waybook.testing.nats_container import image_is_here, image_name

REPOSITORY = "localhost/waybook-nats-server"
ENTRY = "/nats-server"
FOLDERS = ("tmp", "data")


class _Imported(msgspec.Struct):
    """What an engine says at the end of an import; `status` is the image's id."""

    status: str


class ImageMissing(TerminalError):
    """There is no image, and none can be made here: the nats-server has to be a static Linux program."""


def ensure_image() -> str:
    """The image that `image_name` tells where the engine has it, else one made of the installed nats-server.

    Raises ImageMissing, ProgramMissing, and what the engine's client raises.
    """
    wanted = image_name()
    if image_is_here(wanted):
        return wanted
    program = nats_server()
    made = f"{REPOSITORY}:{_version(program)}"
    if not image_is_here(made):
        _import(program, made)
    return made


def _version(program: Path) -> str:
    """As the program tells it: `nats-server: v2.15.1`."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return said.rpartition("v")[2].strip()


def _import(program: Path, image: str) -> None:
    if sys.platform != "linux":
        raise ImageMissing(f"there is no image {image_name()}, and one cannot be made of a program for {sys.platform}")
    repository, _, tag = image.rpartition(":")
    client = docker.from_env()
    try:
        said = client.api.import_image_from_data(_archive(program), changes=[f'ENTRYPOINT ["{ENTRY}"]'])
        made = msgspec.json.decode(said.strip().splitlines()[-1], type=_Imported)
        client.images.get(made.status).tag(repository, tag)  # engines differ in what they make of a tag given before
    finally:
        client.close()
    image_is_here.cache_clear()
    if not image_is_here(image):
        raise ImageMissing(f"the engine did not take the image {image}")


def _archive(program: Path) -> bytes:
    """A file system that holds the program and two empty folders."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(entry)
        data = program.read_bytes()
        entry = tarfile.TarInfo(ENTRY.lstrip("/"))
        entry.size, entry.mode = len(data), 0o755
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
