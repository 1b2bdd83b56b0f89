"""Every exercise of the app, by topic: the lessons' own and the review's."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tinydec.model.checkpoint import Checkpoint
from tinydec.ui.equivalence import exercises as equivalence
from tinydec.ui.exercise import Task
from tinydec.ui.exercises import debugging, memory, shapes
from tinydec.ui.lab import batches
from tinydec.ui.lessons import decode_tasks, home, kv_cache, loop, phases, policy, positions

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
        draw: makes, for a checkpoint, what :func:`tinydec.ui.exercise.exercise` draws from.
        context: the shortest context on which it makes sense.
    """

    key: str
    title: str
    topic: str
    page: str
    draw: Callable[[Checkpoint], Draw]
    context: int = 1


def _on(task: Callable[[Checkpoint, random.Random], Task]) -> Callable[[Checkpoint], Draw]:
    return lambda checkpoint: lambda rng: task(checkpoint, rng)


def _plain(draw: Draw) -> Callable[[Checkpoint], Draw]:
    return lambda _checkpoint: draw


EXERCISES: tuple[Exercise, ...] = (
    Exercise("home.greedy", "Turn the loop once", "policies", "home", _on(home.greedy_task)),
    Exercise(
        "policy.interval",
        "Invert the CDF",
        "policies",
        "decoding-policy",
        _on(policy.interval_task),
    ),
    Exercise(
        "policy.temperature",
        "Turn the temperature",
        "policies",
        "decoding-policy",
        _on(policy.temperature_task),
    ),
    Exercise(
        "review.shape", "The shape of a tensor", "shapes", "prefill-decode", _on(shapes.shape_task)
    ),
    Exercise(
        "review.written",
        "What a pass leaves behind",
        "shapes",
        "kv-cache",
        _on(shapes.written_task),
    ),
    Exercise("phases.pairs", "Count the pairs", "shapes", "prefill-decode", phases.pair_task),
    Exercise("decode.score", "A score", "scores", "decode-step", _on(decode_tasks.score_task)),
    Exercise(
        "decode.weight",
        "An attention weight",
        "scores",
        "decode-step",
        _on(decode_tasks.weight_task),
    ),
    Exercise(
        "kv.discard", "What can be thrown away", "scores", "kv-cache", kv_cache.discard_task, 2
    ),
    Exercise("kv.position", "Truncate and go on", "positions", "kv-cache", kv_cache.operation_task),
    Exercise(
        "positions.returned",
        "Returned, not consumed",
        "positions",
        "positions",
        positions.returned_task,
    ),
    Exercise(
        "positions.slide", "Where keys were made", "positions", "positions", positions.slide_task
    ),
    Exercise(
        "batches.position", "Position or slot?", "positions", "batches", _on(batches.position_task)
    ),
    Exercise(
        "review.bytes", "The bytes of a small cache", "memory", "memory", _on(memory.bytes_task)
    ),
    Exercise("review.fit", "How many fit?", "memory", "memory", _plain(memory.fit_task)),
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
        "loop.stop", "Name the stop reason", "stopping", "generation-loop", _on(loop.stop_task)
    ),
    Exercise(
        "loop.consumed", "Count the inputs", "stopping", "generation-loop", _on(loop.consumed_task)
    ),
    Exercise("batches.stop", "Whose stop reason?", "stopping", "batches", _on(batches.stop_task)),
    Exercise(
        "review.where", "Where it shows first", "debugging", "audit", _plain(debugging.where_task)
    ),
    Exercise(
        "review.cause",
        "From symptom to cause",
        "debugging",
        "fault-lab",
        _plain(debugging.cause_task),
    ),
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
