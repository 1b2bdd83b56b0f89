"""Gradients against finite differences, one step against PyTorch, the run against its record."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import tinydec.training.gradients as gradients_module
from tests.golden_files import GOLDEN
from tinydec.errors import InputError
from tinydec.model.config import ModelConfig
from tinydec.model.provenance import plain_json
from tinydec.model.storage import load_checkpoint
from tinydec.training import (
    DEFAULT,
    FROZEN_CONFIG,
    TrainingSettings,
    TrainingStep,
    loss_and_gradients,
    train,
    train_to_file,
)
from tinydec.training.gradients import Array, cross_entropy
from tinydec.training.loop import adam_step, flatten, initial_tensors, training_batch, unflatten

#: Everything the frozen decoder is without: biases, a separate head, exact GELU.
OTHER_CONFIG = ModelConfig(
    vocab_size=7,
    n_positions=5,
    n_embd=6,
    n_layer=2,
    n_head=3,
    n_inner=11,
    activation_function="gelu",
    attention_bias=True,
    tie_word_embeddings=False,
)
CONFIGS = pytest.mark.parametrize("config", [FROZEN_CONFIG, OTHER_CONFIG], ids=["frozen", "other"])
GRADIENT_TOLERANCE = 1e-6

#: Entropy of the corpus per token: first token A, X, Y with 1/2, 1/4, 1/4 (3/2 ln 2), C or D after
#: A B in half of the sequences (1/2 ln 2), nothing else to guess; over 4 tokens.
LOSS_FLOOR = math.log(2) / 2


def point(config: ModelConfig) -> tuple[Array, np.ndarray, np.ndarray]:
    """Return a random parameter vector, and inputs and targets (3, 3) with repeated tokens."""
    rng = np.random.default_rng(11)
    vector = flatten(config, initial_tensors(config, DEFAULT))
    vector = vector + rng.normal(0, 0.3, vector.shape)  # norm weights and biases too
    inputs, targets = rng.integers(0, config.vocab_size, (2, 3, 3))
    return vector, inputs, targets


def gradient_errors(config: ModelConfig, change: Array | float = 0.0) -> dict[str, float]:
    """Return each tensor's largest distance from central differences, over all its elements."""
    vector, inputs, targets = point(config)
    gradient = flatten(
        config, loss_and_gradients(config, unflatten(config, vector), inputs, targets)[1]
    )
    step, numeric = 1e-5, np.zeros_like(vector)
    for i in range(vector.size):
        offset = np.zeros_like(vector)
        offset[i] = step
        above, below = (
            loss_and_gradients(config, unflatten(config, v), inputs, targets)[0]
            for v in (vector + offset, vector - offset)
        )
        numeric[i] = (above - below) / (2 * step)
    difference = unflatten(config, np.abs(gradient + change - numeric))
    return {name: float(values.max()) for name, values in difference.items()}


@CONFIGS
def test_every_gradient_equals_its_finite_difference(config: ModelConfig) -> None:
    errors = gradient_errors(config)
    assert list(errors) == list(config.tensor_shapes())
    assert {n: e for n, e in errors.items() if e > GRADIENT_TOLERANCE} == {}


@CONFIGS
def test_no_gradient_is_zero_where_it_is_compared(config: ModelConfig) -> None:
    vector, inputs, targets = point(config)
    _, found = loss_and_gradients(config, unflatten(config, vector), inputs, targets)
    assert {n: g.shape for n, g in found.items()} == config.tensor_shapes()
    assert min(np.abs(gradient).max() for gradient in found.values()) > 1e-3


def test_a_wrong_element_in_any_tensor_is_detected() -> None:
    change = {name: np.zeros(shape) for name, shape in FROZEN_CONFIG.tensor_shapes().items()}
    for array in change.values():
        array.flat[-1] = 1e-5
    errors = gradient_errors(FROZEN_CONFIG, flatten(FROZEN_CONFIG, change))
    assert min(errors.values()) > GRADIENT_TOLERANCE


def test_the_derivative_of_the_other_gelu_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = gradients_module.gelu

    def mixed(x: Array, activation: str) -> tuple[Array, Callable[[Array], Array]]:
        return exact(x, activation)[0], exact(x, "gelu")[1]

    monkeypatch.setattr(gradients_module, "gelu", mixed)
    errors = gradient_errors(FROZEN_CONFIG)
    assert errors["h.0.mlp.c_fc.weight"] > GRADIENT_TOLERANCE


def test_cross_entropy_by_hand() -> None:
    # softmax of (0, ln 3) is (1/4, 3/4); over two tokens the mean halves each gradient.
    logits = np.array([[[0.0, math.log(3)], [0.0, 0.0]]])
    loss, gradient = cross_entropy(logits, np.array([[1, 0]]))
    assert loss == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)
    np.testing.assert_allclose(gradient, [[[1 / 8, -1 / 8], [-1 / 4, 1 / 4]]])


def test_adam_by_hand() -> None:
    settings = TrainingSettings(
        learning_rate=0.1, betas=(0.5, 0.75), epsilon=1e-15, weight_decay=0.2
    )
    zero = np.zeros(1)
    # g = 2: m = 1, v = 1, corrected 2 and 4, direction 1; 3 x 0.98 - 0.1
    theta, m, v = adam_step(settings, 1, np.array([3.0]), np.array([2.0]), zero, zero)
    np.testing.assert_allclose(theta, [2.84])
    # g = 1: m = 1, v = 1, corrected 4/3 and 16/7, direction sqrt(7) / 3
    theta, m, v = adam_step(settings, 2, theta, np.array([1.0]), m, v)
    np.testing.assert_allclose(theta, [2.84 * 0.98 - 0.1 * math.sqrt(7) / 3])
    np.testing.assert_allclose([m, v], [[1.0], [1.0]])


def test_the_batch_predicts_each_next_token() -> None:
    inputs, targets = training_batch()
    assert inputs.tolist() == [[0, 2, 3, 4], [0, 2, 3, 5], [0, 6, 7, 6], [0, 7, 6, 7]]
    assert targets.tolist() == [[2, 3, 4, 1], [2, 3, 5, 1], [6, 7, 6, 1], [7, 6, 7, 1]]


def test_only_matrices_start_at_random_and_scale_with_the_initial_scale() -> None:
    half, one = (
        initial_tensors(OTHER_CONFIG, replace(DEFAULT, initial_scale=scale)) for scale in (0.5, 1.0)
    )
    for name, array in half.items():
        if array.ndim == 2:
            np.testing.assert_array_equal(2 * array, one[name])
        else:
            assert np.unique(array).tolist() == [0.0 if name.endswith("bias") else 1.0]
    drawn = np.concatenate([a.ravel() for a in half.values() if a.ndim == 2])
    assert np.unique(drawn).size == drawn.size
    assert 0.45 < drawn.std() < 0.55


def golden() -> tuple[Mapping[str, Array], dict[str, object]]:
    with safe_open(GOLDEN / "training_step_100.safetensors", framework="numpy") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        return tensors, json.loads(opened.metadata()["provenance"])


def distance_from_golden(step: TrainingStep) -> float:
    tensors, _ = golden()
    assert set(tensors) == set(step.tensors)
    return max(float(np.abs(tensors[n] - a).max()) for n, a in step.tensors.items())


def test_training_agrees_with_pytorch_at_step_100_and_reaches_the_floor() -> None:
    assert golden()[1]["settings"] == DEFAULT.to_dict()
    steps: list[TrainingStep] = []
    result = train(DEFAULT, steps.append)
    assert [s.step for s in steps] == list(range(1, DEFAULT.steps + 1))
    assert distance_from_golden(steps[99]) < 1e-6
    assert distance_from_golden(steps[98]) > 1e-3  # the step before is another one
    assert result.losses[1:] == tuple(s.loss for s in steps)
    assert LOSS_FLOOR < result.final_loss < 0.40
    assert min(result.losses) > LOSS_FLOOR


@pytest.mark.parametrize("change", [{"seed": 356}, {"weight_decay": 0.031}, {"epsilon": 1e-6}])
def test_other_settings_miss_the_golden_step(change: dict) -> None:
    steps: list[TrainingStep] = []
    train(replace(DEFAULT, steps=100, **change), steps.append)
    assert distance_from_golden(steps[-1]) > 1e-6


def test_the_shipped_file_records_the_default_settings_and_its_loss() -> None:
    shipped = load_checkpoint()
    assert shipped.config == FROZEN_CONFIG
    assert shipped.config.parameter_count() == 368
    assert shipped.dtype == np.float32
    assert plain_json(shipped.provenance)["settings"] == DEFAULT.to_dict()
    assert shipped.provenance["made_by"].endswith(f"train --seed {DEFAULT.seed} --out FILE")
    loss, _ = loss_and_gradients(FROZEN_CONFIG, shipped.cast("float64").tensors, *training_batch())
    assert loss == pytest.approx(shipped.provenance["final_loss"], abs=1e-6)
    assert LOSS_FLOOR < loss < 0.40


SHORT = replace(DEFAULT, steps=3)


def test_seed_reproducibility() -> None:
    first, again, other = train(SHORT), train(SHORT), train(replace(SHORT, seed=7))
    assert first.losses == again.losses
    assert first.checkpoint == again.checkpoint
    assert other.losses != first.losses
    assert other.checkpoint != first.checkpoint


def test_a_blas_kernel_does_not_change_the_weights() -> None:
    code = "from tinydec.training import train; print(train().checkpoint.digest)"
    digests = set()
    for kernel in ("PRESCOTT", ""):  # the oldest, and the machine's own
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        environment |= {"OPENBLAS_CORETYPE": kernel} if kernel else {}
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[1],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


def test_a_step_cannot_be_written_to() -> None:
    def meddle(step: TrainingStep) -> None:
        step.tensors["wte.weight"][0, 0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        train(SHORT, meddle)


def test_a_file_is_written_whole_with_its_environment(tmp_path: Path) -> None:
    paths = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    results = [train_to_file(SHORT, path, {"blas_kernel": "any"}) for path in paths]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    loaded = load_checkpoint(paths[0])
    assert loaded == results[0].checkpoint
    assert loaded.provenance["final_loss"] == results[0].final_loss
    assert loaded.provenance["environment"] == {"numpy": np.__version__, "blas_kernel": "any"}
    with pytest.raises(InputError, match="found a directory"):
        train_to_file(SHORT, tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("steps", 2.0),
        ("seed", -1),
        ("seed", True),
        ("learning_rate", math.nan),
        ("learning_rate", 0.0),
        ("learning_rate", "fast"),
        ("epsilon", 0.0),
        ("initial_scale", math.inf),
        ("weight_decay", -0.1),
        ("betas", (0.9, 1.0)),
        ("betas", (0.9,)),
        ("betas", None),
    ],
)
def test_bad_settings_get_one_line(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"training {name}: expected .* found ") as caught:
        TrainingSettings(**{name: value})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_diverging_run_gets_one_line() -> None:
    with pytest.raises(InputError, match=r"training: expected a finite loss, found nan at step \d"):
        train(replace(DEFAULT, learning_rate=1e300))
