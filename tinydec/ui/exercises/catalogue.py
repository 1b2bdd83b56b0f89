"""Every exercise of the app, by topic: the lessons' own and the review's."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tinydec.model.checkpoint import Checkpoint
from tinydec.ui.current import CurrentRun
from tinydec.ui.equivalence import exercises as equivalence
from tinydec.ui.evidence import exercises as evidence
from tinydec.ui.exercise import Task
from tinydec.ui.exercises import debugging, real_models, shapes
from tinydec.ui.lab import audits, batch_tasks, faults
from tinydec.ui.lab.exhibits import exhibit
from tinydec.ui.lab.session import session
from tinydec.ui.lessons import decode_tasks, home, kv_cache, loop, phases, policy, positions
from tinydec.ui.memory import exercises as memory

Draw = Callable[[random.Random], Task]

TOPICS = (
    "policies",
    "shapes",
    "scores",
    "positions",
    "memory",
    "equivalence",
    "stopping",
    "debugging",
)


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        key: the score's; the same as on the lesson's page, so that both count as one.
        title: of the block.
        topic: one of :data:`TOPICS`.
        page: ``url_path`` of the lesson that prepares for it.
        draw: makes, for a run, what :func:`tinydec.ui.exercise.exercise` draws from.
        context: the shortest context on which it makes sense.
    """

    key: str
    title: str
    topic: str
    page: str
    draw: Callable[[CurrentRun], Draw]
    context: int = 1


def _on(task: Callable[[Checkpoint, random.Random], Task]) -> Callable[[CurrentRun], Draw]:
    return lambda run: lambda rng: task(run.checkpoint, rng)


def _made(task: Callable[[Checkpoint], Draw]) -> Callable[[CurrentRun], Draw]:
    return lambda run: task(run.checkpoint)


def _plain(draw: Draw) -> Callable[[CurrentRun], Draw]:
    return lambda _run: draw


def _stage(run: CurrentRun) -> Draw:
    return lambda rng: audits.stage_task(lambda fault: session(run, (fault,)), rng)


def _two(run: CurrentRun) -> Draw:
    return lambda rng: audits.two_fault_task(lambda chosen: session(run, chosen), rng)


def _silent(run: CurrentRun) -> Draw:
    return lambda rng: faults.silent_task(lambda fault: exhibit(run, fault), rng)


EXERCISES: tuple[Exercise, ...] = (
    Exercise("home.greedy", "Turn the loop once", "policies", "home", _on(home.greedy_task)),
    Exercise(
        "policy.interval",
        "Invert the CDF",
        "policies",
        "decoding_policy",
        _on(policy.interval_task),
    ),
    Exercise(
        "policy.temperature",
        "Turn the temperature",
        "policies",
        "decoding_policy",
        _on(policy.temperature_task),
    ),
    Exercise(
        "review.shape", "The shape of a tensor", "shapes", "prefill_decode", _on(shapes.shape_task)
    ),
    Exercise(
        "review.written",
        "What a pass leaves behind",
        "shapes",
        "kv_cache",
        _on(shapes.written_task),
    ),
    Exercise(
        "phases.pairs", "Count the pairs", "shapes", "prefill_decode", _made(phases.pair_task)
    ),
    Exercise("decode.score", "A score", "scores", "decode_step", _on(decode_tasks.score_task)),
    Exercise(
        "decode.weight",
        "An attention weight",
        "scores",
        "decode_step",
        _on(decode_tasks.weight_task),
    ),
    Exercise(
        "kv.discard",
        "What can be thrown away",
        "scores",
        "kv_cache",
        _made(kv_cache.discard_task),
        2,
    ),
    Exercise(
        "kv.position", "Truncate and go on", "positions", "kv_cache", _made(kv_cache.operation_task)
    ),
    Exercise(
        "positions.returned",
        "Returned, not consumed",
        "positions",
        "positions",
        _made(positions.returned_task),
    ),
    Exercise(
        "positions.slide",
        "Where keys were made",
        "positions",
        "positions",
        _made(positions.slide_task),
    ),
    Exercise(
        "batches.position",
        "Position or slot?",
        "positions",
        "batches",
        _on(batch_tasks.position_task),
    ),
    Exercise("memory.bytes", "Bytes of a cache", "memory", "memory", _plain(memory.draw_bytes)),
    Exercise("memory.fit", "Requests that fit", "memory", "memory", _plain(memory.draw_fit)),
    Exercise("review.fit", "A real model", "memory", "memory", _plain(real_models.fit_task)),
    Exercise("memory.work", "What a step saves", "memory", "memory", _plain(memory.draw_work)),
    Exercise(
        "equivalence.error",
        "The largest error",
        "equivalence",
        "equivalence",
        _plain(equivalence.draw_error),
    ),
    Exercise(
        "equivalence.act",
        "Where a failure hides",
        "equivalence",
        "equivalence",
        _plain(equivalence.draw_act),
    ),
    Exercise(
        "evidence.replay",
        "What a replay accepts",
        "equivalence",
        "evidence",
        _plain(evidence.draw_replay),
    ),
    Exercise(
        "loop.stop", "Name the stop reason", "stopping", "generation_loop", _on(loop.stop_task)
    ),
    Exercise(
        "loop.consumed", "Count the inputs", "stopping", "generation_loop", _on(loop.consumed_task)
    ),
    Exercise(
        "batches.stop", "Whose stop reason?", "stopping", "batches", _on(batch_tasks.stop_task)
    ),
    Exercise("audit.stage", "Which stage?", "debugging", "audit", _stage),
    Exercise(
        "review.where", "Where it shows first", "debugging", "audit", _plain(debugging.where_task)
    ),
    Exercise(
        "review.cause",
        "From symptom to cause",
        "debugging",
        "fault_lab",
        _plain(debugging.cause_task),
    ),
    Exercise("lab.two", "Two faults at once", "debugging", "fault_lab", _two),
    Exercise("lab.silent", "Which one stays silent?", "debugging", "fault_lab", _silent),
)


@dataclass(frozen=True)
class Score:
    """One topic's exercises: how many were right, tried without success, and not tried."""

    topic: str
    right: int
    tried: int
    untouched: int

    @property
    def total(self) -> int:
        """All exercises of the topic."""
        return self.right + self.tried + self.untouched


def fitting(checkpoint: Checkpoint) -> tuple[Exercise, ...]:
    """Return the exercises that make sense on a checkpoint, in the order of the topics."""
    return tuple(e for e in EXERCISES if e.context <= checkpoint.config.n_positions)


def score_by_topic(exercises: tuple[Exercise, ...], known: Mapping[str, bool]) -> list[Score]:
    """Return one score per topic.

    Args:
        exercises: those to count.
        known: whether each exercise that was checked was ever right, by key.
    """
    found = []
    for topic in TOPICS:
        results = [known.get(e.key) for e in exercises if e.topic == topic]
        counts = (results.count(value) for value in (True, False, None))
        found.append(Score(topic, *counts))
    return found
