"""Whole numbers from outside, checked once and turned into exact Python ints."""

import operator

from tinydec.errors import InputError

# Python refuses to print ints of more than 4300 digits; products of numbers up to this stay below.
LARGEST = 10**100


def whole_number(
    name: str, value: object, minimum: int, maximum: int | None = None, limit: str = ""
) -> int:
    """Return `value` as a Python int in [minimum, maximum].

    NumPy integers are accepted and converted, so that a later product cannot overflow 64 bits.
    `limit` says in words where the maximum comes from. Raises InputError for a bool, a float, a
    text or a number out of range.
    """
    expected = f"a whole number of at least {minimum}"
    if maximum is not None:
        expected += f" and at most {maximum}" + (f" ({limit})" if limit else "")
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name}: expected {expected}, found {value!r}") from None
    if abs(number) > LARGEST:
        raise InputError(f"{name}: expected {expected}, found a number of more than 100 digits")
    if number < minimum or (maximum is not None and number > maximum):
        raise InputError(f"{name}: expected {expected}, found {number}")
    return number
