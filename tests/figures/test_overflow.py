"""Bars of the overflow are differences of its logits."""

import numpy as np

from tests.random_models import random_checkpoint
from tinydec.figures.overflow import difference_figure
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.verification.overflow import REPREFILL, SLIDE, fill_context, overflow

FROZEN = load_checkpoint()
REPORT = overflow(FROZEN, fill_context(FROZEN, [0]))


def test_bars_are_logits_minus_those_of_the_full_forward():
    figure = difference_figure(REPORT, FROZEN.vocabulary.tokens)
    assert [bar.name for bar in figure.data] == [SLIDE, REPREFILL]  # nothing for the refusal
    for bar in figure.data:
        judged = REPORT.outcome(bar.name).judged
        assert judged is not None
        expected = judged.logits.astype(np.float64) - REPORT.reference.astype(np.float64)
        assert list(bar.y) == expected.tolist()
        assert max(map(abs, bar.y)) == judged.max_abs_error


def test_naive_sliding_is_seen_and_prefilling_again_is_not():
    slide, again = difference_figure(REPORT, FROZEN.vocabulary.tokens).data
    assert max(map(abs, slide.y)) > 1e4 * max(map(abs, again.y))


def test_tokens_keep_their_angle_brackets():
    figure = difference_figure(REPORT, FROZEN.vocabulary.tokens)
    assert figure.layout.xaxis.ticktext[0] == "&lt;bos&gt;"


def test_highest_logits_are_drawn_of_a_large_vocabulary():
    checkpoint = random_checkpoint(ModelConfig(97, 3, 15, 2, 3, 23), 7)
    report = overflow(checkpoint, (4, 0, 12, 7))
    figure = difference_figure(report, checkpoint.vocabulary.tokens)
    ids = [int(text.removeprefix("t")) for text in figure.layout.xaxis.ticktext]
    assert len(ids) == 12
    assert set(ids) == set(np.argsort(-report.reference)[:12].tolist())
