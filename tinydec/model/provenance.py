"""Where a checkpoint comes from: JSON values that are checked, copied and frozen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tinydec.errors import InputError
from tinydec.runspec import shown


def frozen_provenance(values: Any) -> Mapping[str, Any]:
    """Return a copy that nobody can change: objects as read-only mappings, lists as tuples.

    Raises:
        InputError: no object; a value that JSON has not, as NaN; text that is not Unicode.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"provenance: expected a JSON object, found {shown(values)}")
    try:
        text = json.dumps(plain_json(values), allow_nan=False, ensure_ascii=False)
        text.encode()  # half of a surrogate pair has no bytes
        return MappingProxyType({k: _frozen(v) for k, v in json.loads(text).items()})
    except (TypeError, ValueError, RecursionError):  # the last for a bottomless list
        raise InputError(
            f"provenance: expected JSON values of Unicode text and finite numbers, "
            f"found {shown(dict(values))}"
        ) from None


def plain_json(value: Any) -> Any:
    """Return JSON values in which mappings are dicts and sequences are lists."""
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    return [plain_json(item) for item in value] if isinstance(value, list | tuple) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
