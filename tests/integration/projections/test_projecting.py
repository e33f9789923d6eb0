"""The projector on real servers: from commits in the stream to rows in the views."""

import json
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
import pytest
from tests.integration.projections.installation import STREAM, Installation
from tests.unit.projections import histories as h
from tests.unit.projections.memory_tables import MemoryTables
from tests.unit.projections.random_runs import random_log

from waybook.events import engine as e
from waybook.events.codec import UndecodableCommit
from waybook.events.commit import Position
from waybook.events.subjects import RunKey
from waybook.projections import agent_actions, inbound_messages
from waybook.projections.errors import NoReadModels, PositionMoved, ProjectionStopped
from waybook.projections.generation import ensure_live
from waybook.projections.log import Batch
from waybook.projections.mark import Mark
from waybook.projections.progress import Entry
from waybook.projections.read_models import ReadModels
from waybook.projections.session import connect_writer
from waybook.projections.status import status
from waybook.projections.storable import clean_json
from waybook.projections.tables import Tables
from waybook.projections.verify import verify

JSON_COLUMNS = frozenset({"flags", "parent", "output", "token_usage", "fields"})


def _plain(row: Any, names: Iterable[str]) -> dict[str, Any]:
    return {n: _value(row[n]) if n in JSON_COLUMNS else row[n] for n in names}


def _value(column: Any) -> Any:
    text = column if isinstance(column, str | None) else json.dumps(column)
    return json.loads(clean_json(text)) if text is not None else None


async def test_rows_in_sql_are_those_of_the_pure_fold(installation: Installation) -> None:
    """Whatever happens in a run, PostgreSQL holds what the handlers say."""
    log = random_log(3, runs=8, commits=400)
    expected = MemoryTables()
    expected.apply(log)
    await installation.project_until(await installation.append((x.key, x.commit) for x in log))
    stored = await installation.rows("SELECT * FROM waybook_g1.inbound_messages")
    messages = {tuple(r[name] for name in inbound_messages.KEY): r for r in stored}
    assert set(messages) == set(expected.messages)
    for key, row in expected.messages.items():
        assert _plain(messages[key], row) == _plain(row, row)
    stored = await installation.rows("SELECT * FROM waybook_g1.agent_actions")
    actions = {tuple(r[name] for name in agent_actions.KEY): r for r in stored}
    assert set(actions) == set(expected.actions)
    for key, row in expected.actions.items():
        assert _plain(actions[key], row) == _plain(row, row)


async def test_a_message_can_be_asked_for_while_its_run_goes_on(installation: Installation) -> None:
    row: dict[str, Any] = {}
    async with installation.projecting() as projector:
        for commit in h.walk():
            sequence = await installation.append([(h.key(), commit)])
            await projector.wait_until(Position(STREAM, sequence), 10)
            async with ReadModels.open(installation.database_url) as models:
                (row,) = await models.messages()
            assert (row["run"], row["version"]) == (h.key().run, commit.version)
    assert (row["status"], row["hold"], row["from"]) == ("draft_ready", "waiting", "ann@example.org")


async def test_questions_to_the_read_models(installation: Installation) -> None:
    await installation.project_until(await installation.append_walks(3))
    run = h.key(1).run
    async with ReadModels.open(installation.database_url) as models:
        actions = await models.actions(run)
        assert [(a["step"], a["status"], a["attempt"]) for a in actions] == [(s, "completed", 1) for s in h.STEPS]
        assert actions[0]["token_usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        assert await models.counts() == {"draft_ready": 3}
        assert len(await models.messages(status="draft_ready", hold="waiting", agent="inbox", limit=2)) == 2
        assert await models.messages(status="sent") == []
        (row,) = await models.message(run, agent="inbox", tenant="default")
        assert row["fields"].keys() == {"field_1", "field_3", "field_5"}
        assert await models.message("nobody") == []


async def test_approvals_are_listed_with_what_became_of_them(installation: Installation) -> None:
    """A decision, a use and a revocation that come in later batches change the row; what is late is not pending."""
    asked = e.ApprovalRequested(
        action="send", resource="mailto:a", scope="", digest="d", requester="state:ready", deciders=("ann",), expires=5_000,
        policy=0, summary="reply\x00",
    )  # fmt: skip
    decided = e.ApprovalDecided(
        approval="1.2", decision="approved", by="ann", received_at=4_000, policy=1, grants=0, reason="fine"
    )
    await installation.project_until(await installation.append([(h.key(), h.commit(1, *h.started(), asked, asked))]))
    async with ReadModels.open(installation.database_url) as models:
        waiting = await models.approvals(now=4_999)
        assert [(r["approval"], r["status"], r["deciders"]) for r in waiting] == [
            ("1.2", "pending", ["ann"]), ("1.3", "pending", ["ann"]),
        ]  # fmt: skip
        assert waiting[0]["summary"] == "reply\ufffd"
        assert await models.approvals(now=5_000) == []
        assert len(await models.approvals(now=5_000, status="expired")) == 2
    later = [h.commit(2, decided), h.commit(3, e.ApprovalUsed(approval="1.2", operation="op"))]
    later.append(h.commit(4, e.ApprovalRevoked(approval="1.3", reason="edited")))
    await installation.project_until(await installation.append((h.key(), c) for c in later))
    async with ReadModels.open(installation.database_url) as models:
        used, revoked = await models.approvals(now=0, status=None, run=h.key().run)
    assert (used["status"], used["decided_by"], used["reason"], used["operation"]) == ("used", "ann", "fine", "op")
    assert (revoked["status"], revoked["revoked"]) == ("revoked", "edited")
    assert (await verify(installation.connection, installation.database_url)).differing == 0


async def test_operations_are_listed_with_what_is_known_of_them(installation: Installation) -> None:
    """Outcomes of later batches change the row, a new intent replaces it, and a person's word ends a dispute."""

    def intended(key: str, at: int) -> e.OperationIntended:
        return e.OperationIntended(key=key, name="mail", action="1.2", digest="d", params={"to": "a"}, deadline=at)

    def settled(key: str, outcome: e.OperationOutcome, by: Literal["call", "person"] = "call") -> e.OperationSettled:
        return e.OperationSettled(key=key, outcome=outcome, by=by, evidence={"text": "x\x00"})

    first = h.commit(1, *h.started(), intended("a", 1), intended("b", 1), settled("b", "unknown"))
    await installation.project_until(await installation.append([(h.key(), first)]))
    async with ReadModels.open(installation.database_url) as models:
        assert {r["operation"]: r["status"] for r in await models.operations(open_only=True)} == {
            "a": "intended", "b": "unknown",
        }  # fmt: skip
    later = [
        h.commit(2, settled("a", "absent"), settled("b", "succeeded")),
        h.commit(3, intended("a", 3), e.OperationDisputed(key="b", outcome="failed", by="find")),
    ]
    await installation.project_until(await installation.append((h.key(), c) for c in later))
    async with ReadModels.open(installation.database_url) as models:
        rows = {r["operation"]: r for r in await models.operations(run=h.key().run)}
    assert (rows["a"]["status"], rows["a"]["deadline"], rows["a"]["evidence"]) == ("intended", 3, None)
    assert (rows["b"]["status"], rows["b"]["disputed"], rows["b"]["evidence"]) == (
        "succeeded", "failed", {"text": "x\ufffd"},
    )  # fmt: skip
    last = h.commit(4, settled("a", "succeeded"), settled("b", "succeeded", "person"))
    await installation.project_until(await installation.append([(h.key(), last)]))
    async with ReadModels.open(installation.database_url) as models:
        assert await models.operations(open_only=True) == []
    assert (await verify(installation.connection, installation.database_url)).differing == 0


async def test_state_wider_than_one_run_has_no_rows_and_is_passed_over(installation: Installation) -> None:
    """The checkpoint moves on over commits of `@thread` and its like."""
    joined = h.commit(1, e.ThreadJoined(agent="inbox", run="run000001"))
    thread = RunKey("default", "@thread", "t1")
    last = await installation.append([(thread, joined), *((h.key(), c) for c in h.walk()), (thread, joined)])
    await installation.project_until(last)
    assert await installation.position() == last
    assert len(await installation.rows("SELECT * FROM waybook.inbound_messages")) == 1


async def test_text_that_postgresql_refuses_is_replaced(installation: Installation) -> None:
    payload = {"text": "a\x00b", "pair": "\U0001f600"}
    done = e.EventPublished(event="Done", schema=1, payload=msgspec.Raw(json.dumps(payload).encode()), action="1.2")
    first = h.commit(1, *h.started(subject="nul\x00"), h.began("1.2"))
    second = h.commit(2, h.completed("1.2", 1), done, h.moved("received", "drafting", note="x\x00"))
    await installation.project_until(await installation.append([(h.key(), first), (h.key(), second)]))
    (row,) = await installation.rows("SELECT subject, fields FROM waybook.inbound_messages")
    assert (row["subject"], json.loads(row["fields"])) == ("nul\ufffd", {"note": "x\ufffd"})
    (action,) = await installation.rows("SELECT output FROM waybook.agent_actions")
    assert json.loads(action["output"])[0]["payload"] == {"text": "a\ufffdb", "pair": "\U0001f600"}


async def test_what_stands_beside_refused_json_is_stored_as_it_would_be_alone(installation: Installation) -> None:
    """A row does not depend on which commits were applied together: not even in how its numbers are written."""
    numbers = msgspec.Raw(b'{"n": [1.10, 1e2, 0.1e131072, 12345678901234567890], "line": "a\\u001fb"}')
    commits = [h.commit(1, *h.started(), h.began("1.2"))]
    done = e.EventPublished(event="Done", schema=1, payload=numbers, action="1.2")
    commits.append(h.commit(2, h.completed("1.2", 1), done, h.moved("received", "drafting")))
    await installation.project_until(await installation.append((h.key(1), c) for c in commits))
    refused = h.commit(3, h.moved("drafting", "failed", note="x\x00"))
    together = [(h.key(number), c) for c in (*commits, refused) for number in (2, 3)]
    last = await installation.append([*together, (h.key(1), refused)])
    await installation.project_until(last)
    assert len({row["output"] for row in await installation.rows("SELECT output FROM waybook.agent_actions")}) == 1
    assert (await installation.verified()).differing == 0


async def test_an_old_reader_cannot_move_a_checkpoint_that_another_has_moved(installation: Installation) -> None:
    """Compare-and-set: whoever lost the lock without noticing writes nothing, rows included."""
    await installation.project_until(await installation.append_walks(1))
    connection = await connect_writer(installation.database_url)
    try:
        tables = Tables(connection, await ensure_live(connection, "waybook"), STREAM)
        assert (await tables.open()).sequence == 6
        late = Batch([Entry(3, h.key(9), h.commit(1, *h.started()))], Mark(3), 1, b"")
        with pytest.raises(PositionMoved):
            await tables.apply(late, Mark(2))
    finally:
        await connection.close()
    assert len(await installation.rows("SELECT * FROM waybook.inbound_messages")) == 1


@pytest.mark.parametrize(
    "events", ['{"type":"NotYetKnown"}', '{"type":"StepCompleted"}'], ids=["unknown-type", "other-shape"]
)
async def test_a_commit_of_another_program_stops_the_projection_and_is_named(
    installation: Installation, events: str
) -> None:
    """An update of this one may read it; to go on would lose it."""
    other = f'{{"version":1,"walk":1,"at":1,"actor":"a","definition":"d","events":[{events}]}}'
    await installation.client.publish("state.g1.00.default.inbox.run1", other.encode())
    with pytest.raises(UndecodableCommit, match=r"state\.g1\.00\.default\.inbox\.run1"):
        await installation.project_until(1)


async def test_what_is_no_commit_is_passed_over_and_named(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """No program will ever read it: its run stands still, and the others go on. A rebuild and `verify` agree."""
    await installation.client.publish("state.g1.00.default.inbox.run1", b"no commit")
    await installation.project_until(await installation.append_walks(1))
    assert len(await installation.rows("SELECT * FROM waybook.inbound_messages")) == 1
    named = [r for r in caplog.records if getattr(r, "action", None) == "projection_passes_over"]
    assert [getattr(r, "subject", None) for r in named] == ["state.g1.00.default.inbox.run1"]
    assert (await installation.verified()).differing == 0


async def test_rows_left_by_hand_give_way_to_the_log(installation: Installation) -> None:
    """A row that nothing in the log has made is in the way of the one that the log makes."""
    await installation.project_until(await installation.append_walks(1))
    await installation.execute(
        "INSERT INTO agent_actions (tenant, agent, run, action, step, trigger, walk, attempt, status, retry_count, sequence,"
        " exhausted) SELECT tenant, agent, 'run000100', action, 'by hand', trigger, 9, 9, 'running', 9, 9,"
        " true FROM agent_actions"
    )
    await installation.project_until(await installation.append_walks(1, first=100))
    rows = await installation.rows("SELECT step FROM waybook.agent_actions WHERE run = 'run000100'")
    assert len(rows) == 5 and all(row["step"] != "by hand" for row in rows)
    assert (await installation.verified()).differing == 0


async def test_rows_that_were_deleted_by_hand_stop_the_projection(installation: Installation) -> None:
    """Its next commit cannot be applied; a rebuild is the way out and the message says so."""
    commits = list(h.walk())
    await installation.project_until(await installation.append((h.key(), c) for c in commits[:3]))
    await installation.execute("DELETE FROM inbound_messages")
    last = await installation.append([(h.key(), commits[3])])
    with pytest.raises(ProjectionStopped, match="waybook projections rebuild"):
        await installation.project_until(last)


async def test_status_tells_how_far_the_read_models_are_behind(installation: Installation) -> None:
    with pytest.raises(NoReadModels):
        await status(installation.connection, installation.database_url)
    await installation.append_walks(2)
    async with installation.projecting() as projector:
        await projector.wait_until(Position(STREAM, 12), 10)
        (stream,) = (await status(installation.connection, installation.database_url)).streams
        assert (stream.checkpoint, stream.last_sequence, stream.lag_events, stream.active) == (12, 12, 0, True)
    await installation.append_walks(1, first=5)
    found = await status(installation.connection, installation.database_url)
    (stream,) = found.streams
    assert (stream.checkpoint, stream.last_sequence, stream.lag_events, stream.active) == (12, 18, 6, False)
    assert 0 < stream.lag_seconds < 30
    assert found.sound
    assert not found.outdated
