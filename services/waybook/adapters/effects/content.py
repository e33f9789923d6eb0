"""What is to be written: given as text, as base64, or as an object in the bucket `artifacts`."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

from waybook.engine.ports import Objects
from waybook.events.errors import InvalidInput

WAYS = ("text", "base64", "artifact")


class ContentGone(InvalidInput):
    """The object that holds the content is not there."""


async def content_of(params: Mapping[str, Any], objects: Objects | None) -> bytes:
    """The bytes that `params` names in exactly one of three ways: `text`, `base64`, or `artifact` (an object's name).

    With `artifact` a `sha256` may stand beside it; other bytes than those are refused. Raises InvalidInput, PortError.
    """
    given = [way for way in WAYS if params.get(way) is not None]
    if len(given) != 1:
        raise InvalidInput(f"the content is given by one of {', '.join(WAYS)}, not by {', '.join(given) or 'none'}")
    way, value = given[0], params[given[0]]
    if not isinstance(value, str):
        raise InvalidInput(f"`{way}` has to be a string")
    if way == "text":
        return value.encode()
    if way == "base64":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise InvalidInput(f"`base64` cannot be read: {error}") from error
    return await _artifact(value, params.get("sha256"), objects)


async def _artifact(name: str, sha256: object, objects: Objects | None) -> bytes:
    if objects is None:
        raise InvalidInput("`artifact` needs the object bucket, which this adapter was not given")
    try:
        data = await objects.get(name)
    except KeyError as error:
        raise ContentGone(f"there is no object {name}") from error
    if sha256 is not None and sha256 != hashlib.sha256(data).hexdigest():
        raise InvalidInput(f"object {name} does not hold the bytes whose sha256 is {sha256}")
    return data
