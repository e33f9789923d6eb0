"""The work of send: one reply, once; what came of it, or why it may not leave now (pipeline-spec 12)."""

from collections.abc import Callable

from waybook.agents.effects import EffectRefused, Effects, OperationFailedForGood, UnknownEffect
from waybook.inbox import events as ev
from waybook.inbox.monitor import Withheld, checked
from waybook.inbox.reply import EFFECT, Reply

KEY = "reply"
NO_SERVER = "no mail server is configured: waybook.toml names none as [effects.mail]"

Sent = ev.ReplySent | ev.ReplyFailed | ev.SendWithheld


async def send(
    due: ev.SendDue,
    *,
    sender: str,
    effects: Effects,
    suppressed: Callable[[str], bool],
    own_hosts: frozenset[str] = frozenset(),
) -> Sent:
    """Sends the reply, or says why not. What may be better soon raises, so that the step is tried again.

    `sender`: the author recorded at intake. An automatic approval goes through the reference monitor first.
    """
    reply = due.reply
    if reply is None:
        return ev.ReplyFailed(text="there is no draft to send")
    if not reply.to:
        return ev.ReplyFailed(text="there is nobody to send it to")
    if suppressed(reply.to[0]):
        return ev.ReplyFailed(text=f"{reply.to[0]} is suppressed")
    if due.source != "human":
        said = checked(reply, sender=sender, own_hosts=own_hosts)
        if isinstance(said, Withheld):
            return ev.ReplyFailed(text=said.text)
        reply = said
    return await _run(reply, due, effects)


async def _run(reply: Reply, due: ev.SendDue, effects: Effects) -> Sent:
    try:
        receipt = await effects.run(EFFECT, reply.params(), key=KEY, approval=due.approval, reservation=due.reservation)
    except EffectRefused as refused:
        return ev.SendWithheld(reason=refused.reason, text=str(refused))
    except OperationFailedForGood as failed:
        return ev.ReplyFailed(text=str(failed.evidence.get("text") or failed))
    except UnknownEffect:
        return ev.ReplyFailed(text=NO_SERVER)
    return ev.ReplySent(message_id=str(receipt.evidence.get("message_id", "")))
