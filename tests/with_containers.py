"""`make test-containers`: the tests of NATS, their nats-servers in containers (`waybook.testing.nats_container`).

Where no container engine answers, the script that WAYBOOK_CONTAINER_ENGINE names starts one: `SCRIPT start` prints the
environment to reach it as `export NAME=VALUE ...`, `SCRIPT stop` ends it. Without both, nothing is tested and it says so.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

import docker
import docker.errors

from waybook.testing.nats_image import ensure_image

TESTS = ("tests/contract", "tests/integration/test_nats_restart.py", "tests/integration/test_nats_doubt.py")
SKIPPED = """skipped: no container engine answers, and there is no script to start one.
Start docker or podman, or name a script: make test-containers WAYBOOK_CONTAINER_ENGINE=PATH"""


def main(arguments: Sequence[str]) -> int:
    """Runs the tests; their exit code, 0 when they are skipped."""
    script = None if engine_answers() else script_to_start()
    if script is None and not engine_answers():
        say(SKIPPED)
        return 0
    if script is not None:
        start(script)
    try:
        return run_tests(arguments)
    finally:
        if script is not None and not others_use_it():
            subprocess.run([script, "stop"], check=True)


def engine_answers() -> bool:
    """Whether a container engine is there to be used."""
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return False
    client.close()
    return True


def script_to_start() -> str | None:
    """The developer's script, when there is one."""
    script = os.environ.get("WAYBOOK_CONTAINER_ENGINE", "")
    return os.path.abspath(script) if os.access(script, os.X_OK) and os.path.isfile(script) else None


def start(script: str) -> None:
    """Starts the engine and takes over the environment by which it is reached."""
    say(f"starting a container engine with {script}")
    said = subprocess.run([script, "start"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for word in shlex.split(said):
        name, equals, value = word.partition("=")
        if equals:
            os.environ[name] = value


def run_tests(arguments: Sequence[str]) -> int:
    """The tests in containers of one image, which is made where it is missing."""
    image = ensure_image()
    say(f"testing in containers of {image}")
    environment = {**os.environ, "WAYBOOK_TEST_NATS_IMAGE": image, "WAYBOOK_TEST_IN_CONTAINERS": "1"}
    environment.pop("WAYBOOK_TEST_NATS_URL", None)
    return subprocess.run([sys.executable, "-m", "pytest", *TESTS, *arguments], env=environment, check=False).returncode


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def others_use_it() -> bool:
    """Whether containers still run, which are not ours: ours are removed with their tests."""
    client = docker.from_env(timeout=5)
    try:
        return bool(client.containers.list())
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
