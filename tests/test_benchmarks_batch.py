"""The benchmark of batches measures what it says."""

import pytest

from benchmarks.batch import TARGET, measure, requests
from tinydec.model.batch_cache import LAYOUTS


def test_requests_differ_in_their_seeds_alone() -> None:
    asked = requests(5)
    assert [request.seed for request in asked] == [0, 1, 2, 3, 4]
    assert len({(request.prompt_ids, request.policy) for request in asked}) == 1


def test_every_layout_and_the_traces_are_timed_beside_solo_runs() -> None:
    found = measure(rows=5, repetitions=3)
    assert (found["rows"], found["target"]) == (5, TARGET)
    assert 5 <= found["tokens"] <= 20
    for name in (*LAYOUTS, "with_traces"):
        side = found[name]
        assert side["ratio"] == pytest.approx(found["solo_seconds"] / side["seconds"])
    assert found["passed"] == all(found[layout]["ratio"] >= TARGET for layout in LAYOUTS)
