"""Bytes of the NATS client protocol: publishing, header blocks, reply headers."""

from collections.abc import Mapping

from waybook.events.errors import InvalidInput

FIRST_LINE = b"NATS/1.0\r\n"
END = b"\r\n"


def publish_frame(subject: bytes, reply: bytes, payload: bytes, headers: bytes | None = None) -> bytes:
    """PUB or, with a header block, HPUB."""
    if headers is None:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject, reply, len(payload), payload)
    size = len(headers)
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (subject, reply, size, size + len(payload), headers, payload)


def header_lines(headers: Mapping[str, str]) -> bytes:
    """The lines of a header block. Raises InvalidInput for a value that would break out of its line."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    count = len(headers)
    if lines.count("\n") != count or lines.count("\r") != count:
        raise InvalidInput(f"a message header holds a line break: {sorted(headers)}")
    return lines.encode()


def header_block(headers: Mapping[str, str]) -> bytes:
    """A whole header block."""
    return FIRST_LINE + header_lines(headers) + END


def parse_headers(block: bytes | None) -> dict[str, str]:
    """The headers of a block, its status line left out. The last of several with one name wins."""
    if block is None:
        return {}
    lines = block.decode("utf-8", "replace").split("\r\n")
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
