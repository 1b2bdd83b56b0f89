"""Training of the shipped checkpoint: plain NumPy, float64, hand-written gradients."""

from tinydec.training.gradients import loss_and_gradients
from tinydec.training.loop import TrainingResult, TrainingStep, train, train_to_file
from tinydec.training.settings import DEFAULT, FROZEN_CONFIG, FROZEN_VOCABULARY, TrainingSettings

__all__ = [
    "DEFAULT",
    "FROZEN_CONFIG",
    "FROZEN_VOCABULARY",
    "TrainingResult",
    "TrainingSettings",
    "TrainingStep",
    "loss_and_gradients",
    "train",
    "train_to_file",
]
