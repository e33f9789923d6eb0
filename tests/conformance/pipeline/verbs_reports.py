"""What other mail servers report of a reply, long after it left: delivery reports and complaints, as mails that arrive."""

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline import product
from tests.conformance.pipeline.messages import Message
from tests.conformance.pipeline.verbs import Action
from tests.conformance.pipeline.world import World

SERVER = "mx.x.example"


async def report(world: World, action: Action) -> None:
    """The report arrives, is walked like any mail, and whoever it concerns learns it."""
    message = world.message(action.get("message"))
    about = await _sent_as(world, message)
    raw = (_bounce if action["outcome"] == "bounced" else _complaint)(about)
    await product.submit(world, product.take_in(world, raw))
    await world.settle()
    await world.scheduling.tell()


async def _sent_as(world: World, message: Message) -> str:
    run = (await world.history(message.key)).run
    sent = run.fields.get("sent_message_id") if run is not None else None
    if not sent:
        raise Unsupported("`provider`: no reply was sent that a report could be about")
    return str(sent)


def _report(kind: str, about: str, *blocks: str) -> bytes:
    """A multipart/report: a text for people, the fields for machines, the headers of the mail that it is about."""
    parts = (
        ("text/plain", "Something is to be said about a mail of yours.\n"),
        (f"message/{kind}", "\n\n".join(blocks) + "\n"),
        ("text/rfc822-headers", f"Message-ID: {about}\nFrom: help@ours.example\nSubject: Re: Question\n"),
    )
    head = (
        f"From: MAILER-DAEMON@{SERVER}\nTo: help@ours.example\nSubject: A report about your mail\n"
        f"Message-ID: <report-{kind}@{SERVER}>\nAuto-Submitted: auto-replied\nMIME-Version: 1.0\n"
        f'Content-Type: multipart/report; report-type={kind}; boundary="b"\n\n'
    )
    body = "".join(f"--b\nContent-Type: {content}\n\n{text}\n" for content, text in parts)
    return f"{head}{body}--b--\n".encode()


def _bounce(about: str) -> bytes:
    whom = "Final-Recipient: rfc822; ann@x.example\nAction: failed\nStatus: 5.1.1"
    return _report("delivery-status", about, f"Reporting-MTA: dns; {SERVER}", whom)


def _complaint(about: str) -> bytes:
    said = "Feedback-Type: abuse\nUser-Agent: case/1\nVersion: 1\nOriginal-Rcpt-To: <ann@x.example>"
    return _report("feedback-report", about, said)
