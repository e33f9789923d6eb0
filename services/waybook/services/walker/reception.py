"""From a delivery to the input of a run's decision; what needs no run is settled here."""

import logging
from collections.abc import Callable

import msgspec

from waybook.agents.definition import AgentDefinition
from waybook.engine.inputs import ChildAnswer, Delivered, Refused, Start
from waybook.engine.ports import Delivery, Objects
from waybook.events.command import Command, StartPayload
from waybook.events.engine import ThreadJoined
from waybook.events.errors import InvalidInput
from waybook.events.headers import command_of
from waybook.events.subjects import ANY, RUN_TOKEN, CommandSubject, RunKey, check_token, parse_command_subject
from waybook.services.walker.correspondence import Correspondence
from waybook.services.walker.definitions import Definitions
from waybook.services.walker.item import Item
from waybook.services.walker.lifecycle import Lifecycle
from waybook.services.walker.people import PeopleDesk
from waybook.services.walker.requests import asked_by, check_issuer, check_tokens, read_command, read_request
from waybook.services.walker.senders import Senders

MOST_DELIVERIES = 10
"""How often a command is delivered without a commit of it before it is given up undecided (claims, rule 9)."""

AWAITED_DELIVERIES = 8
"""How often the start of another agent's run is delivered before who asked for it is told that nobody carries that agent."""

LONGEST_WAIT_S = 60
"""Seconds between two of these deliveries at most; the first wait is one second, each next twice as long."""

log = logging.getLogger(__name__)


class Reception:
    """Reads what was delivered, by the definition of the run that it is for."""

    def __init__(
        self,
        definitions: Definitions,
        lifecycle: Lifecycle,
        correspondence: Correspondence,
        objects: Objects,
        is_broken: Callable[[Delivery], bool],
        people: PeopleDesk,
        senders: Senders,
    ) -> None:
        self._definitions = definitions
        self._lifecycle = lifecycle
        self._correspondence = correspondence
        self._objects = objects
        self._is_broken = is_broken
        self._people = people
        self._senders = senders

    async def receive(self, delivery: Delivery) -> tuple[RunKey, Item] | None:
        """The run and the input; None for a delivery that was settled. Raises PortError, then call it again."""
        if delivery.claim.delivery > MOST_DELIVERIES and not await self._has_commit(delivery):
            text = f"delivered {delivery.claim.delivery} times without a commit"
            await self._correspondence.give_up(delivery, text)
            await self._tell_caller(delivery, "undelivered", text)
            await self._acknowledge(delivery)
            return None
        try:
            return await self._read(delivery)
        except InvalidInput as error:
            await self._correspondence.reject(delivery, error)
            await self._tell_caller(delivery, "invalid_input", str(error))
            await delivery.term("invalid input")
            return None

    async def _has_commit(self, delivery: Delivery) -> bool:
        """Whether the command ever reached STATE; neither it nor its run is decoded, since that may be what kills."""
        command = command_of(delivery.headers)
        try:
            key = parse_command_subject(delivery.subject).key
            check_tokens(key)
        except InvalidInput:
            return False
        return command is not None and await self._lifecycle.mentions(key, command)

    async def _read(self, delivery: Delivery) -> tuple[RunKey, Item] | None:
        subject = parse_command_subject(delivery.subject)
        check_tokens(subject.key)
        command = read_command(delivery)
        current = self._definitions.current(subject.key.agent)
        if current is None and subject.key.agent.startswith("@"):
            await self._people.handle(delivery, subject, command)
            await self._acknowledge(delivery)
            return None
        if current is None:
            await self._not_carried(delivery, subject, command)
            return None
        check_issuer(subject)
        definition = await self._definition(subject, current)
        try:
            request, start = await read_request(delivery, subject, command, definition, self._objects)
            if isinstance(request.body, ChildAnswer) and request.body.result is not None:
                request = await self._with_stop(subject.key, request, request.body)
        except InvalidInput:
            lane = await self._foreign_lane(subject.key)
            if lane is None:
                raise
            await self._correspondence.forward(delivery, command.id, lane)
            await self._acknowledge(delivery)
            return None
        if start is not None and start.thread is not None and start.thread != subject.key.run:
            await self._join_thread(subject.key, start)
        if start is not None and start.sender is not None and isinstance(request.body, Start):
            body = await self._senders.meet(subject.key, request.body, start)
            request = msgspec.structs.replace(request, body=body)
        return subject.key, Item(request, delivery, start)

    async def _with_stop(self, caller: RunKey, request: Delivered, said: ChildAnswer) -> Delivered:
        """An answer with the stop event that it speaks of, read from the run that answers."""
        child = await self._lifecycle.load(RunKey(caller.tenant, said.agent, said.run))
        if child is None or said.result is None:
            return request
        stop = child.event(said.result)
        fields = msgspec.json.decode(stop.payload)
        body = msgspec.structs.replace(said, stop=stop.event, fields=fields if isinstance(fields, dict) else {})
        return msgspec.structs.replace(request, body=body)

    async def _acknowledge(self, delivery: Delivery) -> None:
        """Unless somebody else may have the command by now; then it comes again."""
        if not self._is_broken(delivery):
            await delivery.ack()

    async def _definition(self, subject: CommandSubject, current: AgentDefinition) -> AgentDefinition:
        """The definition by which a payload is read: the run's own, where there is a choice."""
        agent = subject.key.agent
        if not self._definitions.has_older(agent) or (subject.verb == "start" and subject.lane == ANY):
            return current
        decided_by = await self._lifecycle.definition_of(subject.key)
        return (self._definitions.carrying(agent, decided_by) if decided_by is not None else None) or current

    async def _foreign_lane(self, key: RunKey) -> str | None:
        """The lane of a run that no definition here carries: what cannot be read here may well be read there."""
        decided_by = await self._lifecycle.definition_of(key)
        if decided_by is None or self._definitions.carrying(key.agent, decided_by) is not None:
            return None
        return decided_by

    async def _not_carried(self, delivery: Delivery, subject: CommandSubject, command: Command) -> None:
        """Refuses; work that another run hands over waits a while first, since its agent may be deployed a little later."""
        key, times = subject.key, delivery.claim.delivery
        names = ", ".join(self._definitions.agents)
        text = f"no agent {key.agent!r} here; this installation carries {names}"
        parent = asked_by(subject, command)
        if parent is not None and times < AWAITED_DELIVERIES:
            extra = {"action": "agent_awaited", "run": str(key), "delivery": times}
            log.warning("%s; %s asked for it, and is told in about two minutes", text, parent.agent, extra=extra)
            await delivery.nak(min(2 ** (times - 1), LONGEST_WAIT_S))
            return
        await self._correspondence.refuse(delivery, key, command, Refused("unknown_agent", text))
        await self._tell_caller(delivery, "unknown_agent", text)
        await self._acknowledge(delivery)

    async def _tell_caller(self, delivery: Delivery, outcome: str, text: str) -> None:
        """Work that was handed over and never begins is a failure of the request, which would be waited for otherwise."""
        try:
            subject, command = parse_command_subject(delivery.subject), read_command(delivery)
            parent = asked_by(subject, command)
        except InvalidInput:
            return  # nothing says who gave it
        if parent is not None:
            await self._correspondence.tell_caller(subject.key, parent, command, outcome, text)

    async def _join_thread(self, key: RunKey, start: StartPayload) -> None:
        """A run belongs to its thread before it begins, so that a send can see newer mail (R X.1).

        The message that a thread goes by has the thread's token as its run id: it is a member without a word.
        """
        assert start.thread is not None
        thread = RunKey(key.tenant, "@thread", check_token("thread", start.thread, RUN_TOKEN))
        await self._lifecycle.record(thread, ThreadJoined(agent=key.agent, run=key.run, message=start.id))
