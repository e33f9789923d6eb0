"""What the probes work on: a server of their own with the declared streams, and JetStream's raw protocol."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.nuid import NUID

from waybook.events.headers import EXPECTED_SUBJECT_SEQUENCE, MSG_ID

TIMEOUT_S = 5.0
Answer = dict[str, Any]
Member = tuple[str, Mapping[str, str]]  # subject and headers of one message of a batch


class Bench:
    """A connection to the probes' server; `name` keeps the subjects of one probe apart from the others'."""

    def __init__(self, nc: Client, name: str, state: str) -> None:
        self.nc = nc
        self.state = state
        self._name = name.lower().replace(".", "")

    def subject(self, run: str) -> str:
        """A literal subject of STATE."""
        generation, shard = self.state.removeprefix("STATE_").split("_")
        return f"state.{generation}.{shard}.probe.{self._name}.{run}"

    def token(self) -> str:
        """The probe's name as a subject token."""
        return self._name

    async def api(self, call: str, body: object = None) -> Answer:
        """An API call, answers and errors alike."""
        payload = b"" if body is None else msgspec.json.encode(body)
        answer = await self.nc.request(f"$JS.API.{call}", payload, timeout=TIMEOUT_S)
        decoded: Answer = msgspec.json.decode(answer.data)
        return decoded

    async def publish(self, subject: str, headers: Mapping[str, str] | None = None, data: bytes = b"probe") -> Answer:
        """A publish and its acknowledgement, or the refusal."""
        answer = await self.nc.request(subject, data, timeout=TIMEOUT_S, headers=dict(headers or {}))
        decoded: Answer = msgspec.json.decode(answer.data)
        return decoded

    async def append(self, subject: str, expected: int, **headers: str) -> Answer:
        """A guarded publish."""
        return await self.publish(subject, {EXPECTED_SUBJECT_SEQUENCE: str(expected), **headers})

    async def batch(self, members: Sequence[Member]) -> Answer:
        """An atomic batch and the answer to its commit."""
        name = NUID().next().decode()
        for number, (subject, headers) in enumerate(members[:-1], 1):
            await self.nc.publish(subject, b"probe", headers={**headers, **_batch(name, number)})
        subject, headers = members[-1]
        return await self.publish(subject, {**headers, **_batch(name, len(members)), "Nats-Batch-Commit": "1"})

    async def last_sequence(self, stream: str) -> int:
        """The last sequence of a stream."""
        return int((await self.api(f"STREAM.INFO.{stream}"))["state"]["last_seq"])

    async def messages(self, stream: str) -> int:
        """How many messages a stream holds."""
        return int((await self.api(f"STREAM.INFO.{stream}"))["state"]["messages"])

    async def history(self, stream: str, pattern: str, page: int = 500) -> tuple[list[int], str]:
        """Sequences of the first page of a history read by batch direct get, and how it ended (status and text)."""
        inbox = self.nc.new_inbox()
        subscription = await self.nc.subscribe(inbox)
        try:
            request = msgspec.json.encode({"batch": page, "next_by_subj": pattern})
            await self.nc.publish(f"$JS.API.DIRECT.GET.{stream}", request, reply=inbox)
            sequences: list[int] = []
            while True:
                headers = (await subscription.next_msg(TIMEOUT_S)).headers or {}
                if "Status" in headers:
                    return sequences, f"{headers['Status']} {headers.get('Description', '')}".strip()
                sequences.append(int(headers["Nats-Sequence"]))
        finally:
            await subscription.unsubscribe()

    @asynccontextmanager
    async def pulling(self, stream: str, consumer: str) -> AsyncIterator["Puller"]:
        """Pulls from a durable consumer."""
        subscription = await self.nc.subscribe(self.nc.new_inbox())
        try:
            yield Puller(self.nc, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", subscription)
        finally:
            await subscription.unsubscribe()


class Puller:
    """One waiting place for deliveries of a consumer."""

    def __init__(self, nc: Client, subject: str, subscription: Any) -> None:
        self._nc = nc
        self._subject = subject
        self._subscription = subscription

    async def take(self, expires_s: float = TIMEOUT_S) -> Msg | None:
        """The next delivery, or None when there is none in time."""
        request = {"batch": 1, "expires": int(expires_s * 1e9)}
        await self._nc.publish(self._subject, msgspec.json.encode(request), reply=self._subscription.subject)
        message: Msg = await self._subscription.next_msg(expires_s + TIMEOUT_S)
        return None if "Status" in (message.headers or {}) else message


def with_id(name: str, expected: int | None = None) -> dict[str, str]:
    """Headers of a message with an id, and a guard if wanted."""
    guard = {} if expected is None else guarded(expected)
    return {MSG_ID: name, **guard}


def guarded(expected: int) -> dict[str, str]:
    """Headers of a guarded message."""
    return {EXPECTED_SUBJECT_SEQUENCE: str(expected)}


def verdict(answer: Answer) -> str:
    """The error code of an answer, `duplicate`, `stored`, or `ok`."""
    if error := answer.get("error"):
        return str(error.get("err_code", error.get("code")))
    if answer.get("duplicate"):
        return "duplicate"
    return "stored" if "seq" in answer else "ok"


def _batch(name: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": name, "Nats-Batch-Sequence": str(number)}
