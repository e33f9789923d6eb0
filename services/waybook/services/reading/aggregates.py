"""System aggregates as STATE holds them, for a look."""

from waybook.engine.aggregates.grants import Grants, grants_of
from waybook.engine.aggregates.keys import grants_key, policy_key, thread_key
from waybook.engine.aggregates.policy import Policy, policy_of
from waybook.engine.aggregates.thread import Thread, thread_of
from waybook.engine.fold import fold_all
from waybook.engine.ports import StateLog
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.headers import COMMIT
from waybook.events.subjects import RunKey, state_subject


async def read_aggregate(log: StateLog, codec: Codec, key: RunKey) -> Run | None:
    """The folded aggregate; None when there is none yet. Raises PortError."""
    stored = [
        (codec.decode(r.payload, r.headers, r.subject), r.sequence, r.headers.get(COMMIT, ""))
        async for r in log.history(state_subject(key))
    ]
    return fold_all(None, stored, key=key)


async def read_policy(log: StateLog, tenant: str) -> Policy:
    """The tenant's policy and kill switch."""
    return policy_of(await read_aggregate(log, Codec(), policy_key(tenant)))


async def read_grants(log: StateLog, tenant: str) -> Grants:
    """Who may decide what."""
    return grants_of(await read_aggregate(log, Codec(), grants_key(tenant)))


async def read_thread(log: StateLog, tenant: str, thread: str) -> Thread:
    """A conversation by its token."""
    return thread_of(await read_aggregate(log, Codec(), thread_key(tenant, thread)))
