"""Stage 1: the checkpoint, its vocabulary and mode, and the uncached reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinydec.model.checkpoint import EVALUATION, Checkpoint
from tinydec.verification.audit.checks import Check, Finding, Where, judge
from tinydec.verification.compare import absolute_difference
from tinydec.verification.observation import Recording, same_values

#: Returns golden final logits (V,) of a prompt in float64.
Golden = Callable[[tuple[int, ...]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Trusted:
    """What is known of the checkpoint from elsewhere than the recording.

    Attributes:
        config_digest: of the published config.
        vocabulary_digest: of the published vocabulary.
        golden: golden logits of a prompt, from an independent decoder.
    """

    config_digest: str
    vocabulary_digest: str
    golden: Golden


def checkpoint_checks(
    recording: Recording, trusted: Trusted, tolerance: float
) -> tuple[Check, ...]:
    """Judge digests, mode, repeatability and golden logits."""
    loaded = recording.checkpoint
    parts = loaded.part_digests
    digests = (
        ("checkpoint.config", "config is the published one", trusted.config_digest, parts.config),
        (
            "checkpoint.vocabulary",
            "token strings and ids are the published ones",
            trusted.vocabulary_digest,
            parts.vocabulary,
        ),
        (
            "checkpoint.tensors",
            "tensors are those that were loaded",
            recording.tensors_digest,
            parts.tensors,
        ),
    )
    prompts = [run for run in recording.all_runs if run.prompt_logits.size]
    return (
        *(_digest(*entry) for entry in digests),
        judge(
            "checkpoint.mode",
            1,
            "model runs in evaluation mode",
            EVALUATION,
            [Finding(recording.mode, EVALUATION, Where())] if recording.mode != EVALUATION else [],
            count=1,
            passed=recording.mode,
        ),
        judge(
            "checkpoint.repeatable",
            1,
            "the uncached run gives the same logits twice",
            "the same numbers, bit by bit",
            (
                Finding(
                    f"largest difference {_largest(*run.prompt_logits):.3g}",
                    "the same numbers, bit by bit",
                    Where(run.name, tensor="logits"),
                )
                for run in prompts
                if not same_values(run.prompt_logits[0], run.prompt_logits[1])
            ),
            count=len(prompts),
        ),
        judge(
            "checkpoint.golden",
            1,
            "uncached logits equal golden ones",
            f"difference at most {tolerance:.3g}",
            _against_golden(recording, trusted, tolerance),
            count=len(prompts),
            tolerance=tolerance,
        ),
    )


def _digest(check_id: str, title: str, expected: str, found: str) -> Check:
    wrong = [Finding(found[:12], expected[:12], Where())] if expected != found else []
    return judge(check_id, 1, title, expected[:12], wrong, count=1, passed=found[:12])


def _against_golden(recording: Recording, trusted: Trusted, tolerance: float) -> Iterator[Finding]:
    for run in recording.all_runs:
        if not run.prompt_logits.size:
            continue
        error = _largest(run.prompt_logits[0], trusted.golden(run.prompt_ids))
        if not error <= tolerance:
            yield Finding(
                f"difference {error:.3g}",
                f"at most {tolerance:.3g}",
                Where(run.name, position=len(run.prompt_ids) - 1, tensor="logits"),
            )


def _largest(one: NDArray[Any], other: NDArray[Any]) -> float:
    return float(absolute_difference(one, other).max())


def trusted_identity(checkpoint: Checkpoint, golden: Golden) -> Trusted:
    """Return what is to be trusted about a checkpoint that is known to be the published one."""
    parts = checkpoint.part_digests
    return Trusted(parts.config, parts.vocabulary, golden)
