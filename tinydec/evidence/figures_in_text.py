"""Numbers inside a sentence: ``K differs by 0.851`` on another machine may read 0.852.

A measured figure is written with a point or an exponent and a few digits. It depends on the last
bits of the arithmetic as any other float does, and it is rounded. Whole numbers (positions,
counts, ids) are exact, and so are the words and everything inside a word, such as a digest.
"""

from __future__ import annotations

import re
from decimal import Decimal

#: A number that stands alone: no part of a word, of a tensor's name or of a longer number.
_NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)(?![\w]|\.\d)", re.ASCII)


def same_but_figures(expected: str, found: str, tolerance: float) -> bool:
    """Whether two texts agree, measured figures within the tolerance.

    A figure may differ by the tolerance, relative above 1, and by one unit of the last digit
    that either text shows. Two whole numbers must be the same.
    """
    one, other = _NUMBER.split(expected), _NUMBER.split(found)
    if one[::2] != other[::2]:
        return False
    return all(_near(a, b, tolerance) for a, b in zip(one[1::2], other[1::2], strict=True))


def _near(expected: str, found: str, tolerance: float) -> bool:
    if expected == found:
        return True
    if not _measured(expected) and not _measured(found):
        return False
    one, other = Decimal(expected), Decimal(found)
    unit = Decimal(1).scaleb(min(_exponent(one), _exponent(other)))
    return abs(one - other) <= Decimal(tolerance) * max(Decimal(1), abs(one)) + unit


def _measured(number: str) -> bool:
    return "." in number or "e" in number


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
