"""Stage 2: what each layer stored, held against the inputs recorded in the same step.

Nothing here compares with the full run: a row is right when it is its own layer's recorded
input times ``c_attn``, whatever that input was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from numpy.typing import NDArray

from tinydec.model.operations import linear
from tinydec.verification.audit.checks import Check, Finding, Where, judge
from tinydec.verification.compare import largest_difference
from tinydec.verification.observation import (
    LayerObservation,
    Recording,
    RunObservation,
    StepObservation,
    same_values,
)

Array = NDArray[Any]
_Place = tuple[RunObservation, StepObservation, int, LayerObservation]
_Contract = Callable[[_Place], tuple[str, str] | None]


def cache_checks(recording: Recording, tolerance: float) -> tuple[Check, ...]:
    """Judge layer, axes, length, rows, order, width and what attention read."""
    places = list(_places(recording))
    contracts: tuple[tuple[str, str, str, _Contract, float | None], ...] = (
        ("layer", "each layer uses its own cache", "the layer's own index", _layer, None),
        (
            "axes",
            "K and V have axes (h, t, d_h), in memory of their own",
            "(h, t, d_h)",
            _axes,
            None,
        ),
        ("length", "one slot is appended for each input", "one slot for each input", _length, None),
        (
            "rows",
            "each new row is its layer's recorded input times c_attn",
            f"difference at most {tolerance:.3g}",
            lambda place: _rows(place, tolerance),
            tolerance,
        ),
        ("order", "slots stand in the order of their inputs", "0, 1, 2 …", _order, None),
        ("width", "attention is as wide as the cache is long", "the cached length", _width, None),
        ("reads", "attention reads what its layer stored", "the stored rows", _reads, None),
    )
    return (
        *(
            judge(
                f"cache.{name}",
                2,
                title,
                expected,
                chain(_findings(places, contract), _broken_off(recording, name)),
                count=len(places),
                tolerance=bound,
            )
            for name, title, expected, contract, bound in contracts
        ),
        judge(
            "cache.post_conditions",
            2,
            "reset, truncate and export leave behind what they promise",
            "what each promises",
            (
                Finding(post.found, post.expected, Where(post.operation))
                for post in recording.post_conditions
                if post.found != post.expected
            ),
            count=len(recording.post_conditions),
        ),
    )


def _places(recording: Recording) -> Iterator[_Place]:
    for run in recording.all_runs:
        for step in run.steps:
            for layer, stored in enumerate(step.layers):
                yield run, step, layer, stored


def _broken_off(recording: Recording, name: str) -> Iterator[Finding]:
    """Judge what can be judged of the caches that runs left behind when they broke off."""
    for run in recording.all_runs if name == "length" else ():
        stop = run.interruption
        if stop is not None and len(stop.attempted) != len(stop.inputs):
            yield Finding(
                f"{len(stop.attempted)} inputs given to the cache",
                f"{len(stop.inputs)} for inputs {list(stop.inputs)}",
                Where(run.name, stop.step),
            )
    contract = {"layer": _own_tag, "order": _in_order}.get(name)
    for run in recording.all_runs if contract else ():
        for layer, stored in enumerate(run.left_behind):
            deviation = contract(layer, stored) if contract else None
            if deviation is not None:
                yield Finding(*deviation, Where(run.name, len(run.steps), layer))


def _findings(places: list[_Place], contract: _Contract) -> Iterator[Finding]:
    for place in places:
        deviation = contract(place)
        if deviation is not None:
            run, step, layer, _ = place
            observed, expected = deviation
            yield Finding(observed, expected, Where(run.name, step.index, layer))


def _layer(place: _Place) -> tuple[str, str] | None:
    return _own_tag(place[2], place[3])


def _own_tag(layer: int, stored: LayerObservation) -> tuple[str, str] | None:
    return None if stored.tag == layer else (f"cache of layer {stored.tag}", f"of layer {layer}")


def _axes(place: _Place) -> tuple[str, str] | None:
    _, step, _, stored = place
    config = step.checkpoint.config
    expected = (config.n_head, stored.length_after, config.d_h)
    for name, array in (("K", stored.keys), ("V", stored.values)):
        if array.shape != expected:
            return f"{name} {array.shape}", f"{expected}"
    return ("K and V in the same memory", "in their own") if stored.shares_memory else None


def _length(place: _Place) -> tuple[str, str] | None:
    _, step, _, stored = place
    grown = stored.length_after - stored.length_before
    if grown == len(step.inputs):
        return None
    return f"{grown} more slots", f"{len(step.inputs)} for inputs {list(step.inputs)}"


def _rows(place: _Place, tolerance: float) -> tuple[str, str] | None:
    _, step, layer, stored = place
    block, weights = step.activations.blocks[layer], step.checkpoint.weights.blocks[layer]
    heads, count, d_h = block.q.shape[1:]
    projected = linear(block.ln_1, weights.c_attn_weight, weights.c_attn_bias)  # (P, 3d)
    rows = projected.reshape(count, 3, heads, d_h)
    for name, column, array in (("K", 1, stored.keys), ("V", 2, stored.values)):
        new = array[:, stored.length_before : stored.length_before + count]  # (h, P, d_h)
        own = rows[: new.shape[1], column].swapaxes(0, 1)  # (P, h, d_h) -> (h, P, d_h)
        error = largest_difference(own, new)
        if error > tolerance:
            return f"{name} differs by {error:.3g}", f"at most {tolerance:.3g}"
    return None


def _order(place: _Place) -> tuple[str, str] | None:
    return _in_order(place[2], place[3])


def _in_order(_layer: int, stored: LayerObservation) -> tuple[str, str] | None:
    found = [-1 if tag is None else tag.order for tag in stored.slot_tags]
    expected = list(range(len(found)))
    return None if found == expected else (f"inputs {found}", f"{expected}")


def _width(place: _Place) -> tuple[str, str] | None:
    _, step, layer, stored = place
    width = step.activations.blocks[layer].scores.shape[3]
    if width == stored.length_after:
        return None
    return f"{width} scores a query", f"{stored.length_after}"


def _reads(place: _Place) -> tuple[str, str] | None:
    _, step, layer, stored = place
    block = step.activations.blocks[layer]
    for name, read, held in (("K", block.keys, stored.keys), ("V", block.values, stored.values)):
        if not same_values(read[0], held):
            error = largest_difference(read[0], held)
            return f"{name} read differs from {name} stored by {error:.3g}", "the stored rows"
    return None
