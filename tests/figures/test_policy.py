"""The stages of a policy as bars, and the strip of the cumulative distribution."""

from dataclasses import replace

import numpy as np
import pytest

from tinydec.figures.palette import KEY, QUERY
from tinydec.figures.policy import (
    MOST_INTERVALS,
    PolicyPicture,
    policy_figure,
    strip_intervals,
)
from tinydec.generation.policy import choose_rows, distribution
from tinydec.generation.stream import Draw, UniformStream
from tinydec.runspec import GREEDY, SAMPLE, Policy

STATE = UniformStream(0).state
TITLES = ("a", "b", "c", "d", "e")


def picture(
    row: np.ndarray, policy: Policy, uniform: float | None = None, tokens: tuple[str, ...] = ()
) -> PolicyPicture:
    found = distribution(row[None], policy)
    draw = STATE if uniform is None else Draw(uniform, STATE, STATE)
    selection = choose_rows(row[None], policy, [draw])[0]
    return PolicyPicture(
        tokens=tokens or tuple(f"t{i}" for i in range(len(row))),
        logits=row,
        softmax=found.softmax[0],
        top_k=found.top_k[0],
        probabilities=found.probabilities[0],
        kept=found.kept[0],
        cdf=found.cdf[0],
        selected=selection.token_id,
        uniform=selection.uniform,
        shares=found.probabilities[0][::-1].copy(),
        titles=TITLES,
    )


@pytest.fixture
def shown() -> PolicyPicture:
    row = np.log(np.array([1.0, 4.0, 2.0, 3.0]))
    return picture(row, Policy(SAMPLE, 1.0, 3, 0.7), uniform=0.95)


def test_panels_show_the_stages_of_the_core(shown: PolicyPicture) -> None:
    bars = [t for t in policy_figure(shown).data if t.type == "bar"]
    stages = (shown.logits, shown.softmax, shown.top_k, shown.probabilities, shown.shares)
    for trace, values in zip(bars[:5], stages, strict=True):
        assert list(trace.x) == values.tolist()
    # By hand: top-3 keeps 4, 2, 3 of 9; 4/9 does not reach 0.7, 4/9 + 3/9 does.
    np.testing.assert_allclose(bars[2].x, [0, 4 / 9, 2 / 9, 3 / 9])
    np.testing.assert_allclose(bars[3].x, [0, 4 / 7, 0, 3 / 7])


def test_crosses_mark_what_each_rule_dropped(shown: PolicyPicture) -> None:
    crosses = [
        t for t in policy_figure(shown).data if t.type == "scatter" and t.marker.symbol == "x-thin"
    ]
    assert [(t.xaxis, list(t.y)) for t in crosses] == [("x3", [0]), ("x4", [0, 2])]


def test_probabilities_stand_beside_the_shares_of_the_seeds(shown: PolicyPicture) -> None:
    figure = policy_figure(shown)
    expected = [t for t in figure.data if t.type == "scatter" and t.xaxis == "x5"]
    assert list(expected[0].x) == shown.probabilities.tolist()


def test_strip_tiles_the_unit_interval_and_points_at_the_number(shown: PolicyPicture) -> None:
    figure = policy_figure(shown)
    strip = [t for t in figure.data if t.xaxis == "x6"]
    bars, names, pointer = strip
    np.testing.assert_allclose(bars.base, [0, 4 / 7])
    np.testing.assert_allclose(bars.x, [4 / 7, 3 / 7])
    assert list(names.text) == ["t1", "▶ t3"]
    assert set(pointer.x) == {0.95}
    assert list(bars.marker.color)[1] == QUERY.mark  # 0.95 lies in [4/7, 1)
    assert KEY.mark not in bars.marker.color
    assert "0.950000" in figure.layout.xaxis6.title.text


def test_greedy_has_a_strip_without_a_number() -> None:
    figure = policy_figure(picture(np.array([1.0, 3.0, 2.0]), Policy(GREEDY)))
    bars, names, pointer = (t for t in figure.data if t.xaxis == "x6")
    assert (list(bars.base), list(bars.x), list(names.text)) == ([0], [1], ["▶ t1"])
    assert not pointer.x
    assert "no number drawn" in figure.layout.xaxis6.title.text


def test_figure_keeps_its_shape_whatever_the_policy() -> None:
    row = np.linspace(-3, 3, 7)
    kinds = {
        tuple((t.type, t.xaxis) for t in policy_figure(picture(row, policy, u)).data)
        for policy, u in (
            (Policy(GREEDY), None),
            (Policy(SAMPLE, 0.05), 0.0),
            (Policy(SAMPLE, 5.0, 1, 0.05), 0.999),
        )
    }
    assert len(kinds) == 1


def test_token_that_underflows_has_no_interval() -> None:
    shown = picture(np.array([0.0, -1e5, -1.0]), Policy(SAMPLE), 0.5)
    assert [i for i, _, _ in strip_intervals(shown)] == [0, 2]


def test_large_vocabulary_keeps_the_widest_intervals_and_the_selected_one() -> None:
    row = np.zeros(200)
    row[:60] = 1.0
    narrow = picture(row, Policy(SAMPLE), uniform=1 - 1e-9)
    assert narrow.selected == 199
    spans = strip_intervals(narrow)
    assert len(spans) == MOST_INTERVALS + 1
    assert spans[-1][0] == 199
    assert all(i < 60 for i, _, _ in spans[:-1])
    assert len(policy_figure(narrow).data[0].x) == 12


def test_selected_colour_follows_the_selection(shown: PolicyPicture) -> None:
    other = policy_figure(replace(shown, selected=1))
    assert list(other.data[0].marker.color).index(QUERY.mark) == 1
    assert list(policy_figure(shown).data[0].marker.color).index(QUERY.mark) == 3


def test_html_of_tokens_is_text(shown: PolicyPicture) -> None:
    figure = policy_figure(replace(shown, tokens=("a", "<b>", "c", "<img>")))
    assert list(figure.layout.yaxis.ticktext) == ["a", "&lt;b&gt;", "c", "▶ &lt;img&gt;"]
