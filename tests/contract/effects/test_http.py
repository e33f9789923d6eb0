"""HTTP services that drop the connection, answer late, answer 500 after storing, or are down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import pytest
from tests.contract.effects.calls import PassesBeforeTheWrite, call, in_time, too_late
from tests.contract.effects.http_service import Fault, HttpService, http_service

from waybook.adapters.effects.http import HttpCall
from waybook.agents.effects import DeadlinePassed, Done, NotDone, NotThere, Unsure

ASKED = call(path="/tickets", json={"text": "hello"})


@pytest.fixture
async def service() -> AsyncIterator[HttpService]:
    async with http_service(HttpService()) as running:
        yield running


@pytest.fixture
async def adapter(service: HttpService) -> AsyncIterator[HttpCall]:
    made = HttpCall(
        service.url, find_path="/tickets/by-key/{key}", find_is_authoritative=True, undo_path="/tickets/by-key/{key}"
    )
    async with aclosing(made):
        yield made


async def test_a_request_that_is_answered_is_done_and_carries_its_key(service: HttpService, adapter: HttpCall) -> None:
    assert await adapter.find(ASKED) == NotThere({"status": 404})
    made = await adapter.call(ASKED, in_time())
    assert made == Done({"status": 201, "key": "waybook-k1", "body": {"id": 1}})
    assert service.kept == [("waybook-k1", '{"text":"hello"}')]
    found = await adapter.find(ASKED)
    assert isinstance(found, Done) and found.evidence["key"] == "waybook-k1"


@pytest.mark.parametrize(("fault", "kept"), [("drop_before", 0), ("drop_after", 1), ("late", 1), ("500_after", 1)])
async def test_what_was_sent_and_not_answered_is_unsure_and_then_asked_for(
    service: HttpService, adapter: HttpCall, fault: Fault, kept: int
) -> None:
    service.fault = fault
    answer = await adapter.call(ASKED, in_time(0.15 if fault == "late" else 10))
    assert isinstance(answer, Unsure)
    assert len(service.kept) == kept
    assert isinstance(await adapter.find(ASKED), Done if kept else NotThere)
    if fault == "late":
        await asyncio.sleep(service.late_s)  # it answers somebody who went away


@pytest.mark.parametrize(("fault", "again", "wait_ms"), [("429", True, 7000), ("400", False, None)])
async def test_what_the_service_refused_surely_did_not_happen(
    service: HttpService, adapter: HttpCall, fault: Fault, again: bool, wait_ms: int | None
) -> None:
    service.fault = fault
    answer = await adapter.call(ASKED, in_time())
    assert isinstance(answer, NotDone) and service.kept == []
    assert (answer.retryable, answer.retry_after_ms) == (again, wait_ms)


async def test_a_service_that_is_down_surely_did_nothing_and_cannot_be_asked() -> None:
    async with http_service(HttpService()) as gone:
        url = gone.url
    async with aclosing(HttpCall(url, find_path="/x/{key}")) as adapter:
        answer = await adapter.call(ASKED, in_time())
        assert isinstance(answer, NotDone) and answer.retryable
        assert isinstance(await adapter.find(ASKED), Unsure)


async def test_nothing_is_sent_after_the_deadline(service: HttpService, adapter: HttpCall) -> None:
    """The connection may be made; the request is not."""
    with pytest.raises(DeadlinePassed):
        await adapter.call(ASKED, PassesBeforeTheWrite(5_000))
    with suppress(DeadlinePassed):
        assert isinstance(await adapter.call(ASKED, too_late()), NotDone)
    assert service.requests == []


async def test_a_service_without_a_way_to_ask_leaves_it_to_a_person(service: HttpService) -> None:
    async with aclosing(HttpCall(service.url, find_is_authoritative=True)) as adapter:
        answer = await adapter.find(ASKED)
        assert isinstance(answer, Unsure) and not answer.again
        assert not adapter.find_is_authoritative
        assert isinstance(await adapter.undo(ASKED, {}, in_time()), NotDone)


async def test_a_service_that_does_not_answer_the_question_is_asked_again(
    service: HttpService, adapter: HttpCall
) -> None:
    service.answering = False
    answer = await adapter.find(ASKED)
    assert isinstance(answer, Unsure) and answer.again


async def test_undoing_names_the_key_of_what_it_takes_back(service: HttpService, adapter: HttpCall) -> None:
    made = await adapter.call(ASKED, in_time())
    assert isinstance(made, Done)
    undoing = call("undo:x", key="k2", undoes=ASKED.key)
    assert isinstance(await adapter.undo(undoing, made.evidence, in_time()), Done)
    assert service.kept == []
    assert isinstance(await adapter.undo(undoing, made.evidence, in_time()), Done), "gone is undone"


@pytest.mark.parametrize("path", ["tickets", "//elsewhere/x", "http://elsewhere/x", "/a/../b", "/a\\b", None])
async def test_parameters_do_not_lead_to_another_service(adapter: HttpCall, path: object) -> None:
    """They may be a model's."""
    answer = await adapter.call(call(path=path), in_time())
    assert isinstance(answer, NotDone) and not answer.retryable
