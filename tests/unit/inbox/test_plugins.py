"""Gates of the owner's own, and the owner's rules: what a silence or a failure means."""

import asyncio
import time
from pathlib import Path

from waybook.inbox.plugins import Plugin, Plugins
from waybook.inbox.rule_file import RuleFile, standing


async def agrees(sender: str, category: str) -> str | None:
    return None


def objects(sender: str, category: str) -> str | None:
    return f"{sender} writes about {category}"


async def silent(sender: str, category: str) -> str | None:
    await asyncio.Event().wait()
    return None


def blocks(sender: str, category: str) -> str | None:
    time.sleep(0.3)
    return None


def raises(sender: str, category: str) -> str | None:
    raise LookupError("no such list")


def answers_yes(sender: str, category: str) -> object:
    return True


async def asked(*gates: object, patience_s: float = 2.0) -> str | None:
    named = [Plugin(gate.__name__, gate) for gate in gates]  # type: ignore[attr-defined, arg-type]
    return await Plugins(named, patience_s=patience_s).objection("ann@x.example", "support")


async def test_without_an_objection_the_reply_may_leave() -> None:
    assert await asked() is None and await asked(agrees, agrees) is None


async def test_the_first_objection_stands_with_the_plugins_name() -> None:
    assert await asked(agrees, objects, raises) == "objects: ann@x.example writes about support"


async def test_a_plugin_that_is_silent_or_fails_objects() -> None:
    """What cannot be evaluated lets nothing leave, in a thread as on the loop; so does an answer that is no text."""
    assert "did not answer" in str(await asked(silent, patience_s=0.02))
    assert "did not answer" in str(await asked(blocks, patience_s=0.02))
    assert "failed (LookupError)" in str(await asked(raises))
    assert "no text" in str(await asked(answers_yes))


RULE = '[[rule]]\naction = "auto_archive"\n[rule.match]\nsenders = ["{}"]\n'


async def test_the_owners_rules_are_read_anew_when_their_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(RULE.format("a@x.example"), encoding="utf-8")
    source = RuleFile(file)
    assert (await source.rules())[0].match.senders == ("a@x.example",)
    file.write_text(RULE.format("b@long.example"), encoding="utf-8")
    assert (await source.rules())[0].match.senders == ("b@long.example",)


async def test_while_the_file_cannot_be_read_the_last_rules_stand(tmp_path: Path) -> None:
    """A slip of the pen, or a missing file, takes no rule away; where none was ever read there is none."""
    file = tmp_path / "rules.toml"
    source = RuleFile(file)
    assert await source.rules() == ()
    file.write_text(RULE.format("a@x.example"), encoding="utf-8")
    known = await source.rules()
    file.write_text("[[rule]]\naction = 'burn'\n", encoding="utf-8")
    assert await source.rules() == known
    file.unlink()
    assert await source.rules() == known


class Down:
    """A store that fails."""

    async def rules(self) -> tuple[()]:
        raise ConnectionError("away")


async def test_a_store_of_rules_that_fails_stops_no_mail() -> None:
    assert await standing(Down(), ()) == () and await standing(None, ()) == ()
