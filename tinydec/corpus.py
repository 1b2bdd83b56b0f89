"""The controlled corpus: four short patterns over eight tokens.

The course names four controlled patterns without spelling them out; this reading gives both
published traces. After ``<bos> A B`` the corpus continues with C and with D equally often, so
the greedy choice there is a near-tie.
"""

BOS = "<bos>"
EOS = "<eos>"

#: Token strings in id order, ids 0 to 7.
TOKENS: tuple[str, ...] = (BOS, EOS, "A", "B", "C", "D", "X", "Y")

#: The four patterns, without the ``<bos>`` and ``<eos>`` that enclose each.
PATTERNS: tuple[tuple[str, ...], ...] = (
    ("A", "B", "C"),
    ("A", "B", "D"),
    ("X", "Y", "X"),
    ("Y", "X", "Y"),
)


def training_sequences() -> tuple[tuple[str, ...], ...]:
    """Return each pattern between ``<bos>`` and ``<eos>``: 4 sequences of 5 tokens."""
    return tuple((BOS, *pattern, EOS) for pattern in PATTERNS)
