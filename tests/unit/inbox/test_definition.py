"""The definition of `inbox` is named alike in every process, whatever it imported first."""

import subprocess
import sys

ORDERS = ("", "import waybook.services.bootstrap.settings; ", "import waybook.cli; ")
HASH = "from waybook.agents.definition import define; from waybook.inbox.agent import Inbox; print(define(Inbox).engine.hash)"


def test_the_order_of_imports_does_not_change_the_definition() -> None:
    """Equal annotated types are one object to Python, the first that was made, and its numbers are in the schema."""
    hashes = {
        subprocess.run([sys.executable, "-c", first + HASH], capture_output=True, text=True, check=True).stdout.strip()
        for first in ORDERS
    }
    assert len(hashes) == 1
