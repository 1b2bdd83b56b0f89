"""The random stream of one request: PCG64, one uniform number per sampled token."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tinydec.runspec import check_integer

#: PCG64 goes from one 128-bit state to the next by ``state * _MULTIPLIER + increment``.
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_MASK = (1 << 128) - 1


class GeneratorState(NamedTuple):
    """State of a PCG64 generator (O'Neill 2014): all that the next number depends on.

    ``state`` and ``increment`` are 128-bit integers; the last two hold half of a number when
    32-bit integers were drawn, which this project never does.
    """

    state: int
    increment: int
    has_uint32: int = 0
    uinteger: int = 0


class Draw(NamedTuple):
    """One uniform number in [0, 1) and the generator's state before and after it."""

    uniform: float
    state_before: GeneratorState
    state_after: GeneratorState


class UniformStream:
    """A PCG64 generator that belongs to one request."""

    __slots__ = ("_generator", "_state")

    def __init__(self, seed: int) -> None:
        """Seed the stream as ``numpy.random.default_rng(seed)`` does.

        Raises:
            InputError: the seed is not an integer >= 0.
        """
        check_integer("seed", seed, 0)
        self._generator = np.random.Generator(np.random.PCG64(seed))
        self._state = _read(self._generator)

    @classmethod
    def resume(cls, state: GeneratorState) -> UniformStream:
        """Return a stream that goes on from a recorded state."""
        stream = cls(0)
        stream._generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state.state, "inc": state.increment},
            "has_uint32": state.has_uint32,
            "uinteger": state.uinteger,
        }
        stream._state = state
        return stream

    @property
    def state(self) -> GeneratorState:
        """The current state; reading it changes nothing."""
        return self._state

    def draw(self) -> Draw:
        """Consume one uniform number.

        One number is one step of PCG64, so that the state after it is computed, which is faster
        than reading it; ``tests/generation/test_stream.py`` holds it against NumPy's.
        """
        before = self._state
        state, increment, has_uint32, uinteger = before
        after = (state * _MULTIPLIER + increment) & _MASK
        self._state = GeneratorState(after, increment, has_uint32, uinteger)
        return Draw(self._generator.random(), before, self._state)


def _read(generator: np.random.Generator) -> GeneratorState:
    values: Any = generator.bit_generator.state
    inner = values["state"]
    return GeneratorState(inner["state"], inner["inc"], values["has_uint32"], values["uinteger"])
