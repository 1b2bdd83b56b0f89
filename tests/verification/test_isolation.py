"""Every row of a batch equals its solo run, and what breaks a batch is noticed."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.batches import random_batch, random_model
from tinydec.generation.batch import run_batch
from tinydec.generation.policy import select
from tinydec.generation.schedule import LEAVE, BatchRequest, Event
from tinydec.generation.selection import Selection
from tinydec.generation.stream import UniformStream
from tinydec.model.batch_cache import LAYOUTS, LEFT, RAGGED, RIGHT
from tinydec.model.guards import GUARDS, ForeignRequestError
from tinydec.model.seams import LEAVE_CACHES, LEAVE_TOKENS, BatchSeams
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy
from tinydec.verification.isolation import IsolationRecord, isolation, margin, solo_trace

FROZEN = load_checkpoint()
SCHEDULES = 504
SAMPLE = Policy("sample")


@pytest.mark.parametrize("part", range(4))
def test_rows_equal_their_solo_runs_over_random_schedules(part: int) -> None:
    rng = random.Random(part)
    models = [FROZEN.cast("float64"), *(random_model(100 * part + n) for n in range(8))]
    rows = shared = cancelled = 0
    for number in range(SCHEDULES // 4):
        checkpoint = models[number % len(models)]
        requests, schedule = random_batch(rng, checkpoint.config)
        solo = {request: solo_trace(checkpoint, request) for request in requests}
        for layout in LAYOUTS:
            trace = run_batch(checkpoint, requests, schedule, layout)
            for record in isolation(checkpoint, trace, solo=solo):
                assert record.passed, record
                assert record.tokens_equal
                assert record.draws_equal
                assert record.stop_equal
                assert not record.excused
                rows += 1
                shared += bool(record.neighbours)
            cancelled += sum(row.end == "cancelled" for row in trace.rows)
            assert not any(any(counts) for step in trace.steps for counts in step.nan_counts)
    assert rows > 1000
    assert shared > rows / 2
    assert cancelled > 30


def test_rows_of_the_frozen_decoder_in_float32_are_equal_or_excused() -> None:
    rng = random.Random(5)
    for _ in range(40):
        requests, schedule = random_batch(rng, FROZEN.config)
        for layout in LAYOUTS:
            trace = run_batch(FROZEN, requests, schedule, layout)
            for record in isolation(FROZEN, trace):
                assert record.passed, record
                assert record.max_abs_error <= 1e-5


def test_order_and_neighbours_change_nothing() -> None:
    checkpoint = random_model(3)
    rng = random.Random(3)
    requests, _ = random_batch(rng, checkpoint.config, most=6)
    requests = tuple(replace(r, request_id=f"q{n}") for n, r in enumerate(requests * 2))
    solo = {request: solo_trace(checkpoint, request) for request in requests}
    for layout in LAYOUTS:
        for _ in range(10):
            chosen = rng.sample(requests, rng.randint(1, len(requests)))
            trace = run_batch(checkpoint, chosen, (), layout)
            assert [row.request for row in trace.rows] == chosen
            assert all(record.passed for record in isolation(checkpoint, trace, solo=solo))


def test_a_record_names_row_layout_and_neighbours() -> None:
    requests = [BatchRequest(name, (0,), max_new_tokens=2) for name in ("a", "b", "c")]
    late = [Event(5, "join", "c")]
    found = isolation(FROZEN, run_batch(FROZEN, requests, late, RIGHT))
    assert [(r.row, r.layout, r.neighbours) for r in found] == [
        ("a", RIGHT, ("b",)),
        ("b", RIGHT, ("a",)),
        ("c", RIGHT, ()),  # the others had left
    ]


# Faults -------------------------------------------------------------------------------------------


def faulty(
    seams: BatchSeams, layout: str, seed: int, requests: tuple[BatchRequest, ...] | None = None
):
    """Run three sampled rows of unequal lengths with all guards off; return trace and records."""
    checkpoint = random_model(seed, layers=2 + seed % 2)
    if requests is None:
        rng = random.Random(seed)
        size = checkpoint.config.vocab_size
        requests = tuple(
            BatchRequest(
                f"r{n}",
                tuple(rng.randrange(2, size) for _ in range(length)),
                SAMPLE,
                rng.randrange(99),
                new,
            )
            for n, (length, new) in enumerate(((1, 2), (3, 1), (2, 2)))
        )
    trace = run_batch(checkpoint, requests, (), layout, seams=seams, guards=frozenset())
    return trace, isolation(checkpoint, trace)


SEEDS = range(12)


@pytest.mark.parametrize("layout", [LEFT, RIGHT])
def test_attended_padding_is_noticed(layout: str) -> None:
    acted = 0
    for seed in SEEDS:
        trace, records = faulty(BatchSeams(pads_visible=True), layout, seed)
        # A right-padded prompt is causal: its padding is seen by later steps alone.
        steps = [step for step in trace.steps if layout == LEFT or step.phase == "decode"]
        acts = any(step.plan.pads.any() for step in steps)
        assert (max(r.max_abs_error for r in records) > 1e-6) == acts
        assert all(record.passed for record in records) != acts
        acted += acts
    assert acted > len(SEEDS) / 2


def test_positions_from_slots_are_noticed() -> None:
    for seed in SEEDS:
        trace, records = faulty(BatchSeams(positions_from_slots=True), LEFT, seed)
        assert not records[0].passed
        assert records[1].passed  # no padding before it: slots are positions
        assert trace.rows[0].trace.steps[0].positions == (2,)


def test_the_softmax_of_a_masked_row_is_noticed_as_nan_from_the_second_layer_on() -> None:
    for layout in (LEFT, RIGHT):
        for seed in SEEDS:
            trace, records = faulty(BatchSeams(plain_softmax=True), layout, seed)
            counts = trace.steps[0].nan_counts
            assert counts[0][0] > 0
            assert counts[0][1] == 0  # the first layer's real rows are clean
            assert counts[1][1] > 0
            assert not records[0].passed
            assert records[0].max_abs_error == np.inf
            assert trace.rows[0].end == "not_finite"
            assert records[1].passed


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "seams",
    [
        BatchSeams(shared_stream=True),
        BatchSeams(first_token_copied=True),
        BatchSeams(finished_rows_draw=True),
    ],
)
def test_draws_that_are_not_the_rows_own_are_noticed(seams: BatchSeams, layout: str) -> None:
    for seed in SEEDS:
        _, records = faulty(seams, layout, seed)
        assert not all(record.draws_equal for record in records)
        assert not all(record.passed for record in records)
        before = [r for r in records if r.tokens_equal]
        assert all(r.max_abs_error <= 1e-12 for r in before)  # logits say nothing of it


def test_a_batch_that_stops_together_is_noticed_in_the_stop_record_alone() -> None:
    acted = 0
    for seed in SEEDS:
        checkpoint = random_model(seed)
        requests = tuple(
            BatchRequest(f"r{n}", (2 + n, 3), Policy("sample", 2.0), n) for n in range(7)
        )
        trace = run_batch(checkpoint, requests, seams=BatchSeams(stops_together=True))
        for record, row in zip(isolation(checkpoint, trace), trace.rows, strict=True):
            assert record.tokens_equal
            assert record.draws_equal
            assert record.max_abs_error <= 1e-12
            ended = solo_trace(checkpoint, row.request).stop_reason == "eos"
            assert record.stop_equal == (not ended)
            acted += ended
    assert acted > 5


@pytest.mark.parametrize("which", [LEAVE_TOKENS, LEAVE_CACHES])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_caches_or_tokens_left_behind_are_noticed(which: str, layout: str) -> None:
    acted = 0
    for seed in SEEDS:
        checkpoint = random_model(seed, layers=2)
        size = checkpoint.config.vocab_size
        requests = tuple(
            BatchRequest(f"r{n}", (n + 2, (5 * n) % size), SAMPLE, n) for n in range(3)
        )
        if not all(len(solo_trace(checkpoint, r).steps) > 1 for r in requests[1:]):
            continue  # nobody is left to be shifted
        seams, away = BatchSeams(leave=which), [Event(1, LEAVE, "r0")]
        with pytest.raises(ForeignRequestError, match=r"\(row 0, slot 0\)$"):
            run_batch(checkpoint, requests, away, layout, seams=seams)
        off = GUARDS - {"request"}
        trace = run_batch(checkpoint, requests, away, layout, seams=seams, guards=off)
        passed = [record.passed for record in isolation(checkpoint, trace)]
        assert passed == [True, False, False]  # the first had left
        acted += 1
    assert acted > len(SEEDS) / 2


@pytest.mark.parametrize(
    "seams",
    [
        BatchSeams(pads_visible=True),
        BatchSeams(positions_from_slots=True),
        BatchSeams(plain_softmax=True),
    ],
)
def test_without_padding_there_is_nothing_to_get_wrong(seams: BatchSeams) -> None:
    _, records = faulty(seams, RAGGED, 4)
    assert all(record.passed for record in records)


# Excuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_another_token_is_excused_below_twice_the_logit_error_and_never_in_float64(
    dtype: str,
) -> None:
    checkpoint = random_model(6, dtype)
    request = BatchRequest("a", (2, 3), max_new_tokens=1)
    trace = run_batch(checkpoint, [request])
    solo = solo_trace(checkpoint, request)
    selection = solo.steps[0].selection
    first, second = np.argsort(-selection.logits)[:2]

    def against(changed: Selection) -> IsolationRecord:
        step = replace(solo.steps[0], selection=changed)
        known = {request: replace(solo, steps=(step,))}
        [record] = isolation(checkpoint, trace, tolerance=10.0, solo=known)
        assert not record.tokens_equal
        return record

    # The second token moves ahead of the first by 0.001, an error of their gap and 0.001.
    near = selection.logits.copy()
    near[second] = near[first] + near.dtype.type(1e-3)
    near_tie = against(select(near, request.policy, selection.state_before))
    assert near_tie.excused == near_tie.passed == (dtype == "float32")
    # The same logits, and yet another token: no rounding explains that.
    wrong = against(replace(selection, token_id=int(second)))
    assert not wrong.excused
    assert not wrong.passed
    assert wrong.first_difference == 0


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(), 0.5),
        # Half of the interval [0.25, 0.5) lies on either side of its middle; T = 2.
        (Policy("sample", 2.0), 2 * 0.125),
    ],
)
def test_margins_computed_by_hand(policy: Policy, expected: float) -> None:
    if policy.samples:
        row = np.zeros(4)
        selection = select(row, policy, UniformStream(0).state)
        selection = replace(selection, uniform=0.375, token_id=1, interval=(0.25, 0.5))
    else:
        selection = select(np.array([1.0, 3.0, 2.5]), policy, UniformStream(0).state)
    assert margin(selection) == pytest.approx(expected)


def test_the_edges_of_top_k_and_top_p_count_into_the_margin() -> None:
    row = np.log([0.4, 0.3, 0.2, 0.1])
    state = UniformStream(0).state
    top_k = replace(select(row, Policy("sample", top_k=2), state), uniform=0.25)
    assert margin(top_k) <= np.log(0.3 / 0.2) + 1e-12
    near = Policy("sample", top_p=0.7001)  # the first two reach 0.7
    assert margin(select(row, near, state)) == pytest.approx(1e-4, rel=1e-6)
