import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generation.policy_checks import state_of
from tinydec.errors import InputError
from tinydec.generation.stream import UniformStream


@given(st.integers(0, 2**200), st.integers(1, 5))
def test_numbers_are_those_of_default_rng(seed: int, count: int) -> None:
    stream, generator = UniformStream(seed), np.random.default_rng(seed)
    assert [stream.draw().uniform for _ in range(count)] == generator.random(count).tolist()
    assert stream.state == state_of(generator)


@given(st.integers(0, 99), st.integers(0, 4), st.integers(1, 4))
def test_a_stream_goes_on_from_a_recorded_state(seed: int, before: int, after: int) -> None:
    stream = UniformStream(seed)
    for _ in range(before):
        stream.draw()
    resumed = UniformStream.resume(stream.state)
    assert [resumed.draw() for _ in range(after)] == [stream.draw() for _ in range(after)]


def test_draws_chain_their_states() -> None:
    stream = UniformStream(5)
    draws = [stream.draw() for _ in range(3)]
    assert draws[0].state_before == UniformStream(5).state
    assert [d.state_after for d in draws[:2]] == [d.state_before for d in draws[1:]]
    assert len({d.state_before for d in draws}) == 3


def test_reading_the_state_or_resuming_from_it_draws_nothing() -> None:
    stream = UniformStream(7)
    state = stream.state
    UniformStream.resume(state).draw()
    assert stream.state == state
    assert stream.draw() == UniformStream(7).draw()


def test_two_streams_share_nothing() -> None:
    one, other = UniformStream(1), UniformStream(2)
    mixed = [(one.draw(), other.draw()) for _ in range(3)]
    alone = UniformStream(2)
    assert [pair[1] for pair in mixed] == [alone.draw() for _ in range(3)]


@pytest.mark.parametrize("seed", [-1, 1.0, True, None, "1", np.int64(3), float("nan")])
def test_a_seed_that_is_no_natural_number_is_refused(seed) -> None:
    with pytest.raises(InputError, match=r"^seed: expected an integer >= 0, found .*$"):
        UniformStream(seed)
