"""The review's own exercises: each answer computed again by hand from the question's numbers."""

from __future__ import annotations

import random
import re

import pytest

from tests.random_models import random_checkpoint
from tinydec.corpus import BOS, PATTERNS
from tinydec.memory import load_presets
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.ui.exercise import Task, is_right
from tinydec.ui.exercises import debugging, real_models, shapes

SEEDS = range(50)
CHECKPOINTS = {
    "shipped": load_checkpoint(),
    # vocabulary, context, width, layers, heads, MLP
    "primes": random_checkpoint(ModelConfig(13, 11, 15, 2, 3, 23), 7, "float32"),
    "one position": random_checkpoint(ModelConfig(2, 1, 3, 1, 1, 5), 3, "float32"),
}
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


def bold(task: Task) -> list[str]:
    """The numbers and words that the question sets in bold, in order."""
    return re.findall(r"\*\*(.+?)\*\*", task.question)


def checked(task: Task) -> Task:
    """A task whose own answer is right, offered once, and whose neighbours are wrong."""
    assert is_right(task, task.answer)
    if task.choices:
        assert len(set(task.choices)) == len(task.choices) > 1
        assert [c for c in task.choices if is_right(task, c)] == [task.answer]
    else:
        assert not is_right(task, float(task.answer) + 1)
    return task


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_shape_follows_from_batch_heads_rows_and_width(name: str, seed: int) -> None:
    task = checked(shapes.shape_task(CHECKPOINTS[name], random.Random(seed)))
    heads, width, count, batch = (int(number) for number in bold(task))
    prefilled = "prefills" in task.question
    new, held = (count, count) if prefilled else (1, count + 1)
    tensor = found(r"shape of `(\w+)`", task.question)[1]
    rows = held if tensor == "keys" else new
    last = held if tensor in ("scores", "attention") else width
    assert task.answer == f"({batch}, {heads}, {rows}, {last})"


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_pass_writes_a_key_and_a_value_per_new_position(name: str, seed: int) -> None:
    task = checked(shapes.written_task(CHECKPOINTS[name], random.Random(seed)))
    rows, batch, layers, heads, width = (int(number) for number in bold(task))
    assert task.answer == 2 * layers * batch * heads * rows * width


@pytest.mark.parametrize("seed", SEEDS)
def test_only_whole_requests_fit(seed: int) -> None:
    task = checked(real_models.fit_task(random.Random(seed)))
    name, gib, tokens = bold(task)
    layout = load_presets()[name]
    assert layout.window_layers == 0
    assert layout.kv_heads is not None
    assert layout.head_dim is not None
    one = 2 * layout.global_layers * layout.kv_heads * layout.head_dim * BYTES[layout.dtype]
    one *= int(tokens)
    assert isinstance(task.answer, int)
    left = int(gib.split()[0]) * 1024**3 - task.answer * one
    assert 0 <= left < one


# Where each fault shows first, reasoned from what it changes. `P` positions are prefilled.
SHOWS = {
    "Every input gets position 0": lambda P: ("position_embedding", 1),
    "V is built from K": lambda P: ("h.0.values", 0),
    "The second layer attends over the first": lambda P: ("h.1.keys", 0),
    # With one position there is nothing to hide.
    "Prefill with a cache forgets the causal mask": lambda P: ("h.0.scores", 0) if P > 1 else None,
    "With one query and several keys": lambda P: ("h.0.scores", P),
}


def found(pattern: str, text: str) -> re.Match[str]:
    """Return where a pattern stands in a question; it must stand there."""
    match = re.search(pattern, text)
    assert match is not None, text
    return match


def setting(task: Task) -> tuple[int, int]:
    """T and P."""
    prefix, prefilled = found(r"prefix `(.+?)` .*: (\d+) prefilled", task.question).groups()
    assert tuple(prefix.split()) in {(BOS, *p)[:n] for p in PATTERNS for n in (3, 4)}
    return len(prefix.split()), int(prefilled)


@pytest.mark.parametrize("seed", SEEDS)
def test_first_wrong_tensor_is_the_first_that_the_fault_touches(seed: int) -> None:
    task = checked(debugging.where_task(random.Random(seed)))
    length, prefilled = setting(task)
    assert 1 <= prefilled < length
    (place,) = [shows(prefilled) for start, shows in SHOWS.items() if f"*{start}" in task.question]
    assert place is not None
    assert task.answer == place[0]
    assert f"at position {place[1]}." in task.solution


@pytest.mark.parametrize("seed", SEEDS)
def test_one_offered_cause_alone_explains_the_difference(seed: int) -> None:
    task = checked(debugging.cause_task(random.Random(seed)))
    _, prefilled = setting(task)
    tensor, position = found(r"up to `(.+?)` at position \*\*(\d+)\*\*", task.question).groups()
    explains = [
        choice
        for choice in task.choices
        for start, shows in SHOWS.items()
        if choice.startswith(start) and shows(prefilled) == (tensor, int(position))
    ]
    assert explains == [task.answer]


def test_every_fault_is_asked_about() -> None:
    answers = {debugging.cause_task(random.Random(seed)).answer for seed in SEEDS}
    assert len(answers) == len(debugging.REASONS) == len(SHOWS)
