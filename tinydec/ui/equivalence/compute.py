"""What the views of the equivalence show, cached by number format and tolerance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from tinydec.evidence.audit import tolerance_of
from tinydec.figures.equivalence import choices_figure, prefixes_figure, tensors_figure
from tinydec.figures.tolerance import AXIS, tolerance_figure
from tinydec.generation.trace import snapshot
from tinydec.model.activations import tensor_names
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.full import full_forward
from tinydec.runspec import RunSpec
from tinydec.training import FROZEN_CONFIG
from tinydec.ui.audits import base_audit, course_audit, run_of
from tinydec.ui.checkpoints import frozen_checkpoint
from tinydec.ui.compute import computed
from tinydec.verification.contrast import failure_errors, logit_differences, of_fault
from tinydec.verification.equivalence import SplitResult, compare_split, split_mode
from tinydec.verification.fault_effects import (
    FaultEffect,
    Shares,
    fault_effects,
    random_fault_effects,
    shares,
)
from tinydec.verification.faults import DELIBERATE, FAULTS, fault_by_id
from tinydec.verification.noise import ModelNoise, measure_noise
from tinydec.verification.prefixes import PrefixCase, controlled_prefixes

#: Random models behind the tolerance: correct ones, and those that every fault is tried on.
NOISE_MODELS = 200
FAULT_MODELS = 6
NOISE_SEED = 2024
#: Three tolerances for each power of ten.
CURVE = tuple(float(t) for t in np.logspace(AXIS.low, AXIS.high, 3 * (AXIS.high - AXIS.low) + 1))

CORRECT_CACHE = "correct"
#: Place of the run that is shown first, the ninth of the 40: prefill of three tokens, one decoded.
FIRST_RUN = 8


def case_label(case: PrefixCase) -> str:
    """Return how a prefix is called: its pattern and length, which tell equal prefixes apart."""
    return f"{case.pattern}, T = {case.length}: {case.tokens}"


def run_label(split: SplitResult) -> str:
    """Return how one of the 40 runs is called."""
    return run_name(split.case, split.prefill_length)


def run_name(case: PrefixCase, prefill: int) -> str:
    """Return how the run of a prefix with a prefill of some tokens is called."""
    return f"{case.pattern}, T = {case.length}: {split_mode(prefill, case.length)}"


@computed("dtype", "tolerance")
def prefixes_chart(checkpoint: Checkpoint, spec: RunSpec) -> go.Figure:
    """Return the picture of all prefixes."""
    report = course_audit(run_of(checkpoint, spec))
    prefixes = report.equivalence.prefixes
    return prefixes_figure(
        [prefix.case.tokens for prefix in prefixes],
        checkpoint.vocabulary.tokens,
        logit_differences(report.equivalence),
        np.array([prefix.max_abs_error for prefix in prefixes]),
        {f.name: failure_errors(of_fault(report.failures, f.name)) for f in DELIBERATE},
        report.tolerance,
    )


@computed("dtype", "tolerance")
def split_result(
    checkpoint: Checkpoint, spec: RunSpec, case_index: int, prefill_length: int, cache: str
) -> SplitResult:
    """Run one prefix in one split, with a correct cache or under a deliberate failure."""
    cast = checkpoint.cast(spec.dtype)
    case = controlled_prefixes(checkpoint)[case_index]
    full = snapshot(full_forward(cast, case.token_ids))
    tolerance = tolerance_of(spec)
    if cache == CORRECT_CACHE:
        return compare_split(cast, (case,), full, prefill_length, tolerance)[0]
    fault = fault_by_id(cache)
    broken = compare_split(
        cast, (case,), full, prefill_length, tolerance, fault.seams, fault.guards
    )
    return broken[0]


@computed("dtype", "tolerance")
def tensors_chart(
    checkpoint: Checkpoint, spec: RunSpec, case_index: int, prefill_length: int, cache: str
) -> go.Figure:
    """Return the picture of every tensor of one run."""
    run = run_of(checkpoint, spec)
    split = split_result(run, case_index, prefill_length, cache)
    tokens = checkpoint.vocabulary.tokens
    return tensors_figure(
        tensor_names(checkpoint.config.n_layer),
        [f"{position} {tokens[i]}" for position, i in enumerate(split.case.token_ids)],
        split.errors,
        split.tolerance,
        split.first_difference,
    )


@computed("dtype")
def choices_chart(checkpoint: Checkpoint, spec: RunSpec, index: int, fault: str) -> go.Figure:
    """Return the picture of two logits rows of one prefix: correct and under a failure."""
    report = base_audit(run_of(checkpoint, spec))
    return choices_figure(
        checkpoint.vocabulary.tokens,
        report.equivalence.prefixes[index].logits.astype(np.float64),
        of_fault(report.failures, fault)[index].result.logits.astype(np.float64),
        ("full", fault.replace("-", " ")),
    )


# The reason for the tolerance ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reasons:
    """Noise and faults, and what each tolerance of :data:`CURVE` misses and refuses.

    Attributes:
        shipped: noise of correct random models of the shipped sizes.
        noise: noise of correct random models of many sizes.
        own: effects of the faults on this checkpoint.
        random: effects of the faults on random models of the shipped sizes.
        curve: shares of each tolerance.
    """

    shipped: tuple[ModelNoise, ...]
    noise: tuple[ModelNoise, ...]
    own: tuple[FaultEffect, ...]
    random: tuple[FaultEffect, ...]
    curve: tuple[Shares, ...]

    @property
    def effects(self) -> tuple[FaultEffect, ...]:
        """Every fault on every model."""
        return self.own + self.random

    @property
    def smallest(self) -> FaultEffect | None:
        """The smallest effect of a fault that moves logits."""
        return min((e for e in self.effects if e.moves), key=lambda e: e.effect, default=None)

    def at(self, tolerance: float) -> Shares:
        """Return what one tolerance misses and refuses."""
        return shares([tolerance], self.effects, self.noise)[0]


@st.cache_resource(max_entries=1, show_spinner="Drawing random models; once for all visitors.")
def random_models() -> tuple[
    tuple[ModelNoise, ...], tuple[ModelNoise, ...], tuple[FaultEffect, ...]
]:
    """Return the noise of correct models of the shipped sizes and of many, and faults' effects."""
    moving = [FAULTS[i] for i, e in enumerate(fault_effects(frozen_checkpoint(), "")) if e.moves]
    return (
        measure_noise(NOISE_MODELS, NOISE_SEED, sizes=FROZEN_CONFIG),
        measure_noise(NOISE_MODELS, NOISE_SEED),
        random_fault_effects(FAULT_MODELS, NOISE_SEED, moving),
    )


# It depends on the checkpoint alone: no control changes a request's guards.
@computed("guards_off", max_entries=16)
def reasons(checkpoint: Checkpoint, _spec: RunSpec) -> Reasons:
    """Return noise and faults, those on this checkpoint among them."""
    shipped, noise, random = random_models()
    acts = checkpoint.config.n_positions >= 2  # what a session needs
    own = fault_effects(checkpoint, "this model") if acts else ()
    return Reasons(shipped, noise, own, random, shares(CURVE, own + random, noise))


@computed("dtype", "tolerance")
def tolerance_chart(checkpoint: Checkpoint, spec: RunSpec) -> go.Figure:
    """Return the picture of noise and faults with the tolerance between them."""
    found = reasons(run_of(checkpoint, spec))
    groups = {
        "faults, this model": [e for e in found.own if e.moves],
        "faults, others": [e for e in found.random if e.moves],
    }
    dtypes = list(found.noise[0].errors)
    names = {name: [f"{e.name}, {e.model}:" for e in group] for name, group in groups.items()}
    return tolerance_figure(
        {d: np.array([m.errors[d] for m in found.noise]) for d in dtypes},
        {name: np.array([e.effect for e in group]) for name, group in groups.items()},
        names,
        tolerance_of(spec),
        np.array(CURVE),
        np.array([s.missed for s in found.curve]),
        {d: np.array([s.refused[d] for s in found.curve]) for d in dtypes},
    )
