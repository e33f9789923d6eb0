"""How large a commit may be, and which field makes it too large."""

import msgspec

from waybook.engine.ports import CommitTooLarge, Draft

MAX_COMMIT_BYTES = 256 * 1024  # payload of a commit; also the floor of the server's max_msg_size


def check_size(draft: Draft) -> None:
    """Raises CommitTooLarge, naming the largest field, when the payload is over 256 KiB."""
    size = len(draft.payload)
    if size > MAX_COMMIT_BYTES:
        largest = largest_field(draft.payload)
        way_out = "put what is over 64 KiB into the object bucket"
        if largest.startswith("events ("):  # none of them alone
            way_out = (
                "these are many small events: let a step return fewer at once, and an event after which it returns more"
            )
        raise CommitTooLarge(
            f"the commit on {draft.subject} has {size} bytes, allowed are {MAX_COMMIT_BYTES}; "
            f"the largest field is {largest}; {way_out}"
        )


def largest_field(payload: bytes) -> str:
    """The path of the field that holds most of a JSON payload, such as `events[1].payload.body (300000 bytes)`."""
    try:
        value = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"the payload, which is not JSON ({len(payload)} bytes)"
    path, size = "", len(payload)
    while isinstance(value, dict | list) and value:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        key, inner = max(parts, key=lambda part: _size(part[1]))
        if _size(inner) * 2 < size:
            break
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
        value, size = inner, _size(inner)
    return f"{path.lstrip('.') or 'the payload'} ({size} bytes)"


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
