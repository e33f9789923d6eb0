"""What an installed Waybook brings along."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_holds_the_declared_streams_and_the_sql_beside_their_readers(tmp_path: Path) -> None:
    """An installed Waybook finds the same streams.yaml and statements as a checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        assert files.read("waybook/adapters/nats/streams.yaml") == (ROOT / "streams.yaml").read_bytes()
        assert {name.split("/")[0] for name in files.namelist() if "dist-info" not in name} == {"waybook"}
        sources = ROOT / "projections/waybook/projections"
        statements = {file.relative_to(ROOT / "projections").as_posix() for file in sources.rglob("*.sql")}
        assert statements and statements <= set(files.namelist())
