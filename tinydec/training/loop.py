"""Adam over the controlled corpus, from a seed to a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tinydec.corpus import training_sequences
from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import save_checkpoint
from tinydec.training.gradients import Array, Ids, Tensors, loss_and_gradients
from tinydec.training.settings import DEFAULT, FROZEN_CONFIG, FROZEN_VOCABULARY, TrainingSettings


@dataclass(frozen=True)
class TrainingStep:
    """State after ``step`` updates: the loss there (nats per token) and the float64 tensors."""

    step: int
    loss: float
    tensors: Tensors


@dataclass(frozen=True)
class TrainingResult:
    """A trained checkpoint and the way to it.

    Attributes:
        checkpoint: the final tensors in float32, with the settings in its provenance.
        losses: ``losses[k]`` is the loss after k updates (steps + 1 values, nats per token).
        settings: what the run was started with.
    """

    checkpoint: Checkpoint
    losses: tuple[float, ...]
    settings: TrainingSettings

    @property
    def final_loss(self) -> float:
        """Loss after the last update, nats per token."""
        return self.losses[-1]


def train(
    settings: TrainingSettings = DEFAULT,
    on_step: Callable[[TrainingStep], None] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train the frozen decoder in float64 on the whole corpus at each step.

    Args:
        settings: by default those that made the shipped checkpoint.
        on_step: called after each update; its arrays are read-only.
        environment: JSON values about the machine (versions, kernels), for the provenance.

    Raises:
        InputError: the settings make the loss infinite or NaN.
    """
    inputs, targets = training_batch()
    vector = flatten(FROZEN_CONFIG, initial_tensors(FROZEN_CONFIG, settings))
    first, second = np.zeros_like(vector), np.zeros_like(vector)
    losses: list[float] = []
    with np.errstate(all="ignore"):  # a diverging run ends in the error below
        for step in range(settings.steps + 1):
            tensors = unflatten(FROZEN_CONFIG, vector)
            loss, gradients = loss_and_gradients(FROZEN_CONFIG, tensors, inputs, targets)
            if not np.isfinite(loss):
                raise InputError(f"training: expected a finite loss, found {loss} at step {step}")
            losses.append(loss)
            if on_step is not None and step > 0:
                on_step(TrainingStep(step, loss, tensors))
            if step < settings.steps:
                gradient = flatten(FROZEN_CONFIG, gradients)
                vector, first, second = adam_step(
                    settings, step + 1, vector, gradient, first, second
                )
    rounded = {name: array.astype(np.float32) for name, array in tensors.items()}
    provenance = _provenance(settings, losses[-1], environment)
    checkpoint = Checkpoint.build(FROZEN_CONFIG, FROZEN_VOCABULARY, rounded, provenance)
    return TrainingResult(checkpoint, tuple(losses), settings)


def train_to_file(
    settings: TrainingSettings,
    path: str | os.PathLike[str],
    environment: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train and write the checkpoint file, whole or not at all (``train --seed N --out FILE``).

    Raises:
        InputError: as :func:`train`; or the path is a directory or cannot be written.
    """
    result = train(settings, environment=environment)
    save_checkpoint(result.checkpoint, path)
    return result


def training_batch() -> tuple[Ids, Ids]:
    """Return inputs and targets (4, 4): each sequence without its last, without its first token."""
    ids = np.array([FROZEN_VOCABULARY.encode(tokens) for tokens in training_sequences()])
    return ids[:, :-1], ids[:, 1:]


def initial_tensors(config: ModelConfig, settings: TrainingSettings) -> dict[str, Array]:
    """Return the tensors before the first step.

    Matrices (embeddings, projections, a separate head) are drawn from N(0, initial_scale^2), in
    the order of ``config.tensor_shapes()``; norm weights are 1 and biases 0.
    """
    rng = np.random.default_rng(settings.seed)
    tensors = {}
    for name, shape in config.tensor_shapes().items():
        if len(shape) == 2:
            tensors[name] = rng.normal(0.0, settings.initial_scale, shape)
        else:
            tensors[name] = np.zeros(shape) if name.endswith(".bias") else np.ones(shape)
    return tensors


def adam_step(
    settings: TrainingSettings,
    step: int,
    vector: Array,
    gradient: Array,
    first: Array,
    second: Array,
) -> tuple[Array, Array, Array]:
    """Return the parameters and both moment estimates after one update.

    Kingma & Ba 2015, algorithm 1 (``step`` counts from 1), with the decoupled weight decay of
    Loshchilov & Hutter 2019. All arrays have one axis, of all parameters.
    """
    beta_1, beta_2 = settings.betas
    first = beta_1 * first + (1 - beta_1) * gradient
    second = beta_2 * second + (1 - beta_2) * gradient * gradient
    direction = (first / (1 - beta_1**step)) / (
        np.sqrt(second / (1 - beta_2**step)) + settings.epsilon
    )
    decayed = vector * (1 - settings.learning_rate * settings.weight_decay)
    return decayed - settings.learning_rate * direction, first, second


def flatten(config: ModelConfig, tensors: Tensors) -> Array:
    """Return all tensors as one vector, in the order of ``config.tensor_shapes()``."""
    return np.concatenate([tensors[name].ravel() for name in config.tensor_shapes()])


def unflatten(config: ModelConfig, vector: Array) -> Tensors:
    """Return the tensors as read-only views of such a vector."""
    view = vector.view()
    view.setflags(write=False)
    tensors, start = {}, 0
    for name, shape in config.tensor_shapes().items():
        stop = start + int(np.prod(shape))
        tensors[name] = view[start:stop].reshape(shape)
        start = stop
    return MappingProxyType(tensors)


def _provenance(
    settings: TrainingSettings, final_loss: float, environment: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "made_by": f"python -m tinydec train --seed {settings.seed} --out FILE",
        "settings": settings.to_dict(),
        "final_loss": final_loss,
        "environment": {"numpy": np.__version__, **(environment or {})},
    }
