"""How older shapes of engine events become the present one.

`ENGINE_UPCASTERS[(type, version)]` takes the JSON object of an event of that version to the next version; each
raise of an engine event's `SCHEMA` adds one here, and a stored sample of the old shape to the tests.
"""

from collections.abc import Callable
from typing import Any

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

ENGINE_UPCASTERS: dict[tuple[str, int], Upcaster] = {}
