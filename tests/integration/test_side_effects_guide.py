"""The guide's program runs as it stands."""

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "side-effects.md"
DEADLINE_S = 60.0


async def test_the_guides_program_prints_what_the_guide_says(tmp_path: Path) -> None:
    """And the file is there, once."""
    text = GUIDE.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    (promised,) = re.findall(r"^It prints `(.*)`$", text, flags=re.MULTILINE)
    program = tmp_path / "filing.py"
    program.write_text(code, encoding="utf-8")
    child = await asyncio.create_subprocess_exec(sys.executable, str(program), stdout=PIPE, cwd=tmp_path)
    async with asyncio.timeout(DEADLINE_S):
        printed, _ = await child.communicate()
    assert printed.decode().strip() == promised
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["sales.txt"]
