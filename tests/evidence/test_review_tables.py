"""Tables of the review can be written and read back."""

from __future__ import annotations

import pytest

from tinydec.errors import InputError
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.evidence.review_tables import GLOSSARY, SCORES, glossary, scores


def test_results_are_words_and_come_back() -> None:
    table = scores([("shapes", "A", "Home", True), ("shapes", "B", "Home", False),
                    ("memory", "=C", "8", None)])  # fmt: skip
    assert table["result"].tolist() == ["right", "not yet", "open"]
    assert read_csv(write_csv(table, SCORES), SCORES).equals(table)
    with pytest.raises(InputError, match="expected the columns"):
        write_csv(table, GLOSSARY)


def test_a_word_has_no_size() -> None:
    table = glossary([("prefix", "", "All so far.", "Home"), ("h", "2", "heads", "5")])
    assert table["here"].tolist() == [None, "2"]
    assert read_csv(write_csv(table, GLOSSARY), GLOSSARY).equals(table)
