"""What is written to a pipe."""

import json
import os
import subprocess
import sys

CUT = """
import os, signal
from waybook.cli.output import buffer_output, print_json
signal.signal(signal.SIGALRM, lambda *_: os.write(2, b"."))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
buffer_output()
print_json(["x" * 1000] * 500)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_write_that_a_signal_cuts_short_loses_nothing() -> None:
    """Half a megabyte goes whole through a full pipe, also where Python buffers nothing (PYTHONUNBUFFERED)."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", CUT], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as writer:
        assert writer.stderr is not None
        assert writer.stderr.read(3) == b"..."  # the pipe is full by now, and signals came in the write
        output, _ = writer.communicate(timeout=60)
    assert len(json.loads(output)) == 500
