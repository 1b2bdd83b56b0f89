"""An intervention: values for named seams of the correct code, and the guards that are off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from tinydec.generation.seams import (
    CORRECT_POLICY,
    CORRECT_REQUEST,
    PolicySeams,
    RequestSeams,
)
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.seams import (
    CORRECT,
    CORRECT_BATCH,
    CORRECT_REFERENCE,
    BatchSeams,
    ReferenceSeams,
    Seams,
)


@dataclass(frozen=True)
class Intervention:
    """What differs from the correct code.

    Attributes:
        load: maps the checkpoint file's content to what is loaded.
        reference: seams of the uncached path.
        request: seams of requests, with those of model and policy inside.
        batch: seams of batches.
        guards_off: guards that would refuse it.
    """

    load: Callable[[Checkpoint], Checkpoint] | None = None
    reference: ReferenceSeams = CORRECT_REFERENCE
    request: RequestSeams = CORRECT_REQUEST
    batch: BatchSeams = CORRECT_BATCH
    guards_off: frozenset[str] = frozenset()


NOTHING = Intervention()


def solo(
    *,
    guards_off: frozenset[str] = frozenset(),
    model: Seams = CORRECT,
    policy: PolicySeams = CORRECT_POLICY,
    **seams: Any,
) -> Intervention:
    """Return an intervention in single requests."""
    return Intervention(request=RequestSeams(model, policy, **seams), guards_off=guards_off)


def merged(one: Intervention, other: Intervention) -> Intervention:
    """Return both interventions at once.

    Where both fill the same seam, functions of one argument and result are chained (``one``
    first), functions of a cache keep their order, and of two numbers the larger holds.
    """
    both: Intervention = _merge(one, other)
    return both


def _merge(one: Any, other: Any) -> Any:
    values = {}
    default = type(one)()
    for field in fields(one):
        a, b, plain = (getattr(part, field.name) for part in (one, other, default))
        if b == plain:
            values[field.name] = a
        elif a == plain:
            values[field.name] = b
        else:
            values[field.name] = _both(field.name, a, b)
    return type(one)(**values)


def _both(name: str, a: Any, b: Any) -> Any:
    if isinstance(a, frozenset):
        return a | b
    if isinstance(a, int | float):
        return max(a, b)
    if callable(a):
        chain: Callable[..., Any] = _CHAINS.get(name, _chained)
        return chain(a, b)
    return _merge(a, b)


def _chained(a: Callable[[Any], Any], b: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: b(a(value))


def _chained_pair(
    a: Callable[..., tuple[Any, Any]], b: Callable[..., tuple[Any, Any]]
) -> Callable[..., tuple[Any, Any]]:
    return lambda k, v: b(*a(k, v))


def _chained_checkpoint(a: Callable[..., Any], b: Callable[..., Any]) -> Callable[..., Any]:
    return lambda step, checkpoint: b(step, a(step, checkpoint))


def _chained_cache(a: Callable[..., None], b: Callable[..., None]) -> Callable[..., None]:
    def both(step: int, used: KVCache, neighbour: KVCache) -> None:
        a(step, used, neighbour)
        b(step, used, neighbour)

    return both


def _chained_reason(a: Callable[..., Any], b: Callable[..., Any]) -> Callable[..., Any]:
    return lambda reason, consumed, context: b(a(reason, consumed, context), consumed, context)


#: How two functions at one seam follow each other, by the seam's name.
_CHAINS: dict[str, Callable[..., Any]] = {
    "stored": _chained_pair,
    "checkpoint_at": _chained_checkpoint,
    "cache_before": _chained_cache,
    "stop_reason": _chained_reason,
}
