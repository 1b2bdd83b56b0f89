"""Refusals: each with its own exception, before anything is read or changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.random_models import random_checkpoint
from tests.rows import REQUEST, distance, run_cached
from tinydec.errors import InputError
from tinydec.generation.batch import run_batch
from tinydec.generation.request import Request
from tinydec.generation.schedule import BatchRequest
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.decode import decode_step
from tinydec.model.full import full_forward
from tinydec.model.guards import (
    GUARDS,
    ContextOverflowError,
    ForeignRequestError,
    GuardError,
    PositionError,
    StaleCacheError,
    WrongLayerError,
    check_guards,
)
from tinydec.model.prefill import prefill
from tinydec.model.seams import Seams
from tinydec.runspec import Policy

CONFIG = ModelConfig(13, 11, 15, 3, 3, 23)
CHECKPOINT = random_checkpoint(CONFIG, 7)
OTHER = random_checkpoint(CONFIG, 8)
IDS = [[3, 1, 4], [2, 7, 1]]
BOTH = pytest.mark.parametrize("consume", [decode_step, prefill])


def one_more(consume: Callable) -> Any:
    """One token for each of two sequences, in the form that `consume` takes."""
    return [5, 9] if consume is decode_step else [[5], [9]]


def filled(capacity: int | None = None) -> KVCache:
    return run_cached(CHECKPOINT, IDS, (2, 0), capacity)[0]


def state(cache: KVCache) -> tuple:
    """Everything that a refusal must leave as it was."""
    layers = [(at.layer, at.length, at.keys.tobytes(), at.values.tobytes()) for at in cache.layers]
    return layers, list(cache.consumed), cache.owner, cache.capacity


def refused(
    consume: Callable,
    error: type[Exception],
    cache: KVCache,
    checkpoint: Checkpoint = CHECKPOINT,
    request: str = REQUEST,
    ids: Any = None,
    seams: Seams | None = None,
    guards: frozenset[str] = GUARDS,
) -> Any:
    """Consume one token, see it refused in one line and the cache unchanged; return the error."""
    before = state(cache)
    given = one_more(consume) if ids is None else ids
    with pytest.raises(error) as info:
        consume(checkpoint, cache, given, request, seams or Seams(), guards)
    assert type(info.value) is error
    assert len(str(info.value).splitlines()) == 1
    assert "expected" in str(info.value)
    assert "found" in str(info.value)
    assert state(cache) == before
    return info.value


# Guards on --------------------------------------------------------------------------------------


@BOTH
def test_stale_checkpoint_is_refused(consume: Callable) -> None:
    error = refused(consume, StaleCacheError, filled(), checkpoint=OTHER)
    assert (error.expected, error.found) == (CHECKPOINT.digest[:12], OTHER.digest[:12])


@BOTH
def test_a_change_of_one_scalar_makes_the_cache_stale(consume: Callable) -> None:
    bias = CHECKPOINT.tensors["ln_f.bias"].copy()
    bias[0] = np.nextafter(bias[0], 9)
    updated = CHECKPOINT.with_tensors({**CHECKPOINT.tensors, "ln_f.bias": bias})
    refused(consume, StaleCacheError, filled(), checkpoint=updated)


@BOTH
def test_same_weights_in_another_dtype_are_stale(consume: Callable) -> None:
    refused(consume, StaleCacheError, filled(), checkpoint=CHECKPOINT.cast("float32"))


@BOTH
def test_foreign_request_is_refused(consume: Callable) -> None:
    error = refused(consume, ForeignRequestError, filled(), request="request 2")
    assert (error.expected, error.found) == (REQUEST, "request 2")


@BOTH
@pytest.mark.parametrize("capacity", [None, 29])
def test_input_beyond_the_context_is_refused(consume: Callable, capacity: int | None) -> None:
    full_cache, _ = run_cached(CHECKPOINT, [[1] * 11, [2] * 11], (11,), capacity)
    error = refused(consume, ContextOverflowError, full_cache)
    assert (error.expected, error.found) == ("at most 11", 12)


@BOTH
def test_input_beyond_the_capacity_is_refused(consume: Callable) -> None:
    error = refused(consume, ContextOverflowError, filled(capacity=3))
    assert (error.expected, error.found) == ("at most 3", 4)


def test_chunk_that_reaches_beyond_the_context_is_refused_whole() -> None:
    error = refused(prefill, ContextOverflowError, filled(), ids=[[1] * 9, [2] * 9])
    assert (error.expected, error.found) == ("at most 11", 12)


@BOTH
@pytest.mark.parametrize("layer", [1, 2])
def test_wrong_layer_is_refused(consume: Callable, layer: int) -> None:
    seams = Seams(read_layer=lambda at: 0 if at == layer else at)
    error = refused(consume, WrongLayerError, filled(), seams=seams)
    assert (error.expected, error.found) == (layer, 0)


@BOTH
def test_wrong_position_is_refused(consume: Callable) -> None:
    error = refused(consume, PositionError, filled(), seams=Seams(position=lambda _: 0))
    assert (error.expected, error.found) == (3, 0)


@BOTH
def test_refusals_come_in_a_fixed_order_before_a_position_is_asked_for(consume: Callable) -> None:
    asked: list[int] = []

    def position(consumed: int) -> int:
        asked.append(consumed)
        return 0

    wrong = Seams(position=position, read_layer=lambda _: 0)
    full_cache, _ = run_cached(CHECKPOINT, [[1] * 11, [2] * 11], (11,))
    everything: dict[str, Any] = {"checkpoint": OTHER, "request": "request 2", "seams": wrong}
    refused(consume, StaleCacheError, full_cache, **everything)
    del everything["checkpoint"]
    refused(consume, ForeignRequestError, full_cache, **everything)
    del everything["request"]
    refused(consume, ContextOverflowError, full_cache, **everything)
    refused(consume, WrongLayerError, filled(), **everything)
    assert asked == []
    refused(consume, PositionError, filled(), seams=Seams(position=position))
    assert asked == [3]


def test_every_guard_has_its_own_exception() -> None:
    kinds = GuardError.__subclasses__()
    assert len(kinds) == len(GUARDS) == 5
    assert len({kind.contract for kind in kinds}) == 5
    assert str(PositionError(3, 0)) == "next position: expected 3, found 0"


# Guards off: the fault acts ---------------------------------------------------------------------


def without(name: str) -> frozenset[str]:
    assert name in GUARDS
    return GUARDS - {name}


@BOTH
@pytest.mark.parametrize(
    ("guard", "seams", "expected"),
    [
        ("position", Seams(position=lambda _: 0), (0,)),
        ("layer", Seams(read_layer=lambda layer: max(layer - 1, 0)), (3,)),
    ],
)
def test_fault_changes_logits_and_leaves_shapes(
    consume: Callable, guard: str, seams: Seams, expected: tuple[int, ...]
) -> None:
    right = consume(CHECKPOINT, filled(), one_more(consume), REQUEST)
    cache = filled()
    wrong = consume(CHECKPOINT, cache, one_more(consume), REQUEST, seams, without(guard))
    assert wrong.positions == expected
    assert [a.shape for _, a in wrong.named()] == [a.shape for _, a in right.named()]
    assert distance(wrong.logits, right.logits) > 1e-2
    assert cache.length == 4


@BOTH
@pytest.mark.parametrize("guard", sorted(GUARDS))
def test_without_a_fault_a_guard_changes_nothing(consume: Callable, guard: str) -> None:
    right = consume(CHECKPOINT, filled(), one_more(consume), REQUEST)
    off = consume(CHECKPOINT, filled(), one_more(consume), REQUEST, Seams(), without(guard))
    assert np.array_equal(off.logits, right.logits)


@BOTH
def test_stale_cache_gives_other_logits_than_the_new_checkpoint(consume: Callable) -> None:
    ids = one_more(consume)
    stale = consume(OTHER, filled(), ids, REQUEST, Seams(), without("checkpoint"))
    right = full_forward(OTHER, [[*IDS[0], 5], [*IDS[1], 9]]).logits[:, -1:]
    assert distance(stale.logits, right) > 1e-2


@BOTH
def test_foreign_request_pollutes_the_cache(consume: Callable) -> None:
    cache = filled()
    consume(CHECKPOINT, cache, one_more(consume), "request 2", Seams(), without("request"))
    assert cache.token_ids().tolist() == [[3, 1, 4, 5], [2, 7, 1, 9]]


@BOTH
def test_overflow_reuses_a_row_that_exists_when_the_position_is_wrapped(consume: Callable) -> None:
    cache, _ = run_cached(CHECKPOINT, [[1] * 11, [2] * 11], (11,), capacity=12)
    seams, guards = Seams(position=lambda n: n % 11), GUARDS - {"overflow", "position"}
    step = consume(CHECKPOINT, cache, one_more(consume), REQUEST, seams, guards)
    assert step.positions == (0,)
    assert cache.length == 12
    assert np.isfinite(step.logits).all()


# What cannot be computed is refused with or without a guard ---------------------------------------


@BOTH
@pytest.mark.parametrize("row", [-1, 11, 12])
def test_position_row_that_does_not_exist_is_refused(consume: Callable, row: int) -> None:
    seams = Seams(position=lambda _: row)
    error = refused(consume, PositionError, filled(), seams=seams, guards=frozenset())
    assert (error.expected, error.found) == ("a row from 0 to 10", row)


@BOTH
def test_overflow_without_its_guard_finds_no_position_row(consume: Callable) -> None:
    cache, _ = run_cached(CHECKPOINT, [[1] * 11, [2] * 11], (11,), capacity=12)
    refused(consume, PositionError, cache, guards=frozenset())


@BOTH
def test_there_is_no_writing_behind_the_last_slot(consume: Callable) -> None:
    refused(consume, ContextOverflowError, filled(capacity=3), guards=frozenset())


@BOTH
@pytest.mark.parametrize("source", [-1, 2, 3])
def test_layer_that_has_no_row_for_this_position_is_refused(consume: Callable, source: int) -> None:
    seams = Seams(read_layer=lambda layer: source if layer == 1 else layer)
    error = refused(consume, WrongLayerError, filled(), seams=seams, guards=frozenset())
    assert (error.expected, error.found) == ("one from 0 to 1", source)


@BOTH
@pytest.mark.parametrize(
    "config", [ModelConfig(13, 11, 15, 2, 3, 23), ModelConfig(13, 11, 15, 3, 5, 23)]
)
def test_cache_of_other_sizes_is_refused(consume: Callable, config: ModelConfig) -> None:
    other = random_checkpoint(config, 7)
    error = refused(consume, StaleCacheError, filled(), checkpoint=other, guards=frozenset())
    assert error.expected == "3 layers, 3 heads of width 5"


@pytest.mark.parametrize(
    "guards", [frozenset({"layers"}), {"layer", "x"}, "layer", ["layer"], None]
)
def test_unknown_guard_is_refused_wherever_guards_are_given(guards: Any) -> None:
    for run in (
        lambda: check_guards(guards),
        lambda: Request(CHECKPOINT, (0,), Policy(), 1, guards=guards),
        lambda: run_batch(CHECKPOINT, (BatchRequest("one", (0,)),), guards=guards),
    ):
        with pytest.raises(InputError, match="guards: expected a set of checkpoint, layer"):
            run()


def test_any_known_guards_are_accepted() -> None:
    check_guards(frozenset())
    check_guards({"layer"})
    check_guards(GUARDS)
