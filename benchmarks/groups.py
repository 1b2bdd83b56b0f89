"""The rows of the report, in groups that each run in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.environment import installed
from benchmarks.lab import lab
from benchmarks.rows import Row, compared
from benchmarks.timing import CLOCKS, CPU, WALL, Job, interleave
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.verification.prefixes import controlled_prefixes

#: The least ratios that the project promises.
DECODE_TARGET = 6.0
EQUIVALENCE_TARGET = 6.0
GPT2_SMALL_TARGET = 1.2

#: `<bos> A B D`, the greedy trace that fills the frozen model's context.
_TRACE = (0, 2, 3, 5)
_PROMPT_LENGTH = 64
_DECODE_STEPS = 32


def frozen(threads: int, quick: bool, with_peer: bool) -> list[Row]:
    """Return the frozen model's decode step and equivalence."""
    checkpoint = load_checkpoint()
    repetitions = 3 if quick else 31
    # Every sample repeats its work for some 20 ms, so that each side runs with warm caches.
    jobs = {
        "decode": ours.decode_context(checkpoint, _TRACE, passes=100),
        "side by side": ours.verify(checkpoint, every_split=False, side_by_side=True, passes=8),
        "one by one": ours.verify(checkpoint, every_split=False, side_by_side=False, passes=3),
    }
    if with_peer:
        jobs |= _frozen_peer(checkpoint, threads)
    timings = interleave(jobs, repetitions, CLOCKS[CPU])
    row = _comparison(timings, threads, CPU)
    return [
        row(
            "decode step, frozen model, B = 1",
            "decode",
            "peer decode",
            DECODE_TARGET,
            "ours: KVCache, 4 x decode_step (all guards, seams asked, every intermediate returned)",
            "peer: DynamicCache, 4 x model(one token, use_cache=True)",
        ),
        row(
            "16 prefixes against the plain loop",
            "side by side",
            "peer loop",
            EQUIVALENCE_TARGET,
            "ours: verify_prefixes(side_by_side=True, every_split=False): for each length 1 full "
            "forward of 4 rows, 1 prefill of 1 token, T - 1 decode steps; everything recorded",
            "peer: for each prefix 1 full run and T runs of one token with a cache, 56 calls; "
            "final logits alone",
        ),
        row(
            "16 prefixes, batched against batched",
            "side by side",
            "peer batches",
            None,
            "ours: as above",
            "peer: for each length 1 full run of 4 rows and T runs of one token with a cache, "
            "14 calls; final logits alone",
        ),
        row(
            "16 prefixes, one by one against one by one",
            "one by one",
            "peer loop",
            None,
            "ours: verify_prefixes(every_split=False), each cache with B = 1; everything recorded",
            "peer: the plain loop",
        ),
    ]


def _frozen_peer(checkpoint: Checkpoint, threads: int) -> dict[str, Job]:
    from benchmarks import peer

    peer.limit_threads(threads)
    model = peer.build(checkpoint)
    cases = controlled_prefixes(checkpoint)
    single = [[case.token_ids] for case in cases]
    lengths = sorted({case.length for case in cases})
    batches = [[case.token_ids for case in cases if case.length == n] for n in lengths]
    kinds: dict[str, Callable[[], Job]] = {
        "peer decode": lambda: peer.decode_context(model, _TRACE, passes=15),
        "peer loop": lambda: peer.final_logits(model, single, passes=1),
        "peer batches": lambda: peer.final_logits(model, batches, passes=4),
    }
    return {
        f"{kind}, {attention}": job
        for kind, make in kinds.items()
        for attention, job in peer.each_attention(model, make).items()
    }


def gpt2_small(threads: int, quick: bool, with_peer: bool) -> list[Row]:
    """Return the decode step of a model with the sizes of GPT-2 small."""
    checkpoint = ours.random_checkpoint(ours.GPT2_SMALL)
    steps, repetitions = (2, 1) if quick else (_DECODE_STEPS, 5)
    prompt = range(1000, 1000 + _PROMPT_LENGTH)
    jobs = {"decode": ours.GreedyDecoder(checkpoint, prompt, steps).job()}
    if with_peer:
        from benchmarks import peer

        peer.limit_threads(threads)
        model = peer.build(checkpoint)
        made = peer.each_attention(model, lambda: peer.GreedyDecoder(model, prompt, steps).job())
        jobs |= {f"peer decode, {attention}": job for attention, job in made.items()}
    clock = CPU if threads == 1 else WALL
    row = _comparison(interleave(jobs, repetitions, CLOCKS[clock]), threads, clock)
    return [
        row(
            "decode step, GPT-2 small's sizes, B = 1",
            "decode",
            "peer decode",
            GPT2_SMALL_TARGET,
            f"ours: greedy, {steps} x decode_step after a prompt of {_PROMPT_LENGTH} tokens; "
            f"{ours.gigabytes(ours.GPT2_SMALL):.2f} GB of weights are read in each",
            "peer: the same tokens and steps with a DynamicCache",
        )
    ]


def alone(threads: int, quick: bool, with_peer: bool) -> list[Row]:  # noqa: ARG001 - one shape
    """Return timings that have no peer: all 40 rows of the equivalence, and an audit."""
    checkpoint = load_checkpoint()
    repetitions = 3 if quick else 21
    timing = interleave(
        {"all": ours.verify(checkpoint, every_split=True, side_by_side=False, passes=1)},
        repetitions,
        CLOCKS[CPU],
    )
    rows = [
        compared(
            "equivalence in full: 16 prefixes, 40 rows",
            timing["all"],
            {},
            None,
            threads,
            CPU,
            ("ours: verify_prefixes(checkpoint), every split, each cache with B = 1",),
        )
    ]
    if installed("pandas"):  # which the audit's tables need
        rows.append(_audit(1 if quick else 5, threads))
    return rows


def _audit(repetitions: int, threads: int) -> Row:
    """Time `python -m tinydec audit` from start to exit."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1_000_000))

        def run() -> None:
            out = Path(folder) / str(next(numbers))
            command = [sys.executable, "-m", "tinydec", "audit", "--out", str(out)]
            subprocess.run(command, check=True, capture_output=True)

        timing = interleave({"audit": Job(run)}, repetitions, CLOCKS[WALL])["audit"]
    note = "ours: python -m tinydec audit --out DIR in a new process, imports included"
    return compared("audit, end to end", timing, {}, None, threads, WALL, (note,))


def _comparison(timings: Mapping[str, Any], threads: int, clock: str) -> Callable[..., Row]:
    """Return a maker of rows from the names of our job and of the peer's jobs."""

    def row(title: str, job: str, peer: str, target: float | None, *calls: str) -> Row:
        peers = {
            name.removeprefix(f"{peer}, "): timing
            for name, timing in timings.items()
            if name.startswith(f"{peer}, ")
        }
        return compared(title, timings[job], peers, target, threads, clock, calls)

    return row


GROUPS: Mapping[str, Callable[[int, bool, bool], list[Row]]] = {
    "frozen": frozen,
    "gpt2-small": gpt2_small,
    "alone": alone,
    "lab": lab,
}
