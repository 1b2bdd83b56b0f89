"""Tables of the runs: generator states as text, and the intervals of a selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.evidence.run_tables import intervals, parse_state, state_text
from tinydec.generation.policy import select
from tinydec.generation.stream import GeneratorState, UniformStream
from tinydec.runspec import GREEDY, SAMPLE, Policy

WORDS = st.integers(0, 2**128 - 1)


@given(state=st.builds(GeneratorState, WORDS, WORDS, st.integers(0, 1), st.integers(0, 2**32 - 1)))
def test_generator_state_comes_back_from_its_text(state: GeneratorState) -> None:
    assert parse_state(state_text(state)) == state


def test_text_of_a_state_goes_on_with_the_same_numbers() -> None:
    stream = UniformStream(41)
    stream.draw()
    resumed = UniformStream.resume(parse_state(state_text(stream.state)))
    rng = np.random.default_rng(41)
    assert [rng.random(), rng.random()][1] == resumed.draw().uniform


@pytest.mark.parametrize("text", ["", "state 1", "state x increment 1 has_uint32 0 uinteger 0"])
def test_other_text_is_no_state(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|invalid"):
        parse_state(text)


def test_intervals_of_the_kept_tokens_tile_the_unit_interval() -> None:
    logits = np.log(np.array([1.0, 4.0, 2.0, 3.0]))  # top-3 keeps 4, 2, 3 of 9
    selection = select(logits, Policy(SAMPLE, 1.0, 3), UniformStream(0).state)
    found = intervals(selection)
    assert found[0] is None
    spans = [span for span in found if span is not None]
    np.testing.assert_allclose(spans, [(0, 4 / 9), (4 / 9, 6 / 9), (6 / 9, 1)])
    assert found[selection.token_id] == selection.interval


def test_greedy_has_no_intervals() -> None:
    selection = select(np.array([1.0, 2.0]), Policy(GREEDY), UniformStream(0).state)
    assert intervals(selection) == (None, None)
