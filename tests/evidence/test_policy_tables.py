"""Tables of one selection; probabilities by hand, states against NumPy's own."""

import numpy as np
import pandas as pd
import pytest

from tinydec.evidence import policy_tables
from tinydec.evidence.csv_format import read_csv, write_csv
from tinydec.generation.seeds import first_uniforms, token_counts
from tinydec.generation.stream import Draw, UniformStream
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import GREEDY, SAMPLE, Policy

VOCABULARY = Vocabulary(("a", "b", "c", "d", "e"))
#: Softmax at temperature 1: 1/10, 4/10, 2/10, 3/10, 0 (nearly).
ROW = np.log(np.array([1.0, 4.0, 2.0, 3.0, 1e-9]))
TOP_3 = Policy(SAMPLE, 1.0, 3)


def drawn(seed: int = 41) -> Draw:
    return UniformStream(seed).draw()


def stages(policy: Policy = TOP_3) -> pd.DataFrame:
    selection = policy_tables.choose_for(ROW, policy, drawn())
    counts = token_counts(ROW, policy, first_uniforms(50))
    return policy_tables.stages(VOCABULARY, selection, counts)


def test_stages_are_those_computed_by_hand() -> None:
    table = stages()
    np.testing.assert_allclose(table["softmax"], [0.1, 0.4, 0.2, 0.3, 1e-10], rtol=1e-8)
    np.testing.assert_allclose(table["after top-k"], [0, 4 / 9, 2 / 9, 3 / 9, 0])
    assert table["from"].tolist()[0] is None
    np.testing.assert_allclose(table["to"].tolist()[1:4], [4 / 9, 6 / 9, 1])
    np.testing.assert_allclose(table["expected"], 50 * table["after top-p"])
    # 50 seeds, probability 2/9: sqrt(50 * 2/9 * 7/9) = sqrt(700) / 9
    assert table["± sd"][2] == pytest.approx(700**0.5 / 9)
    assert table["drawn"].sum() == 50
    # Seed 41 draws 0.954, which lies in the last interval [6/9, 1).
    assert table["token"][table["selected"]].tolist() == ["d"]


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    table = stages(Policy(SAMPLE, 1.0, None, 0.6))  # 0.4 does not reach 0.6, 0.4 + 0.3 does
    np.testing.assert_allclose(table["after top-k"][:4], [0.1, 0.4, 0.2, 0.3])
    np.testing.assert_allclose(table["after top-p"], [0, 4 / 7, 0, 3 / 7, 0])


def test_bits_are_the_whole_state_in_readable_groups() -> None:
    state = np.random.PCG64(41).state["state"]["state"]
    text = policy_tables.bits(state)
    assert [len(group) for group in text.split()] == [4] * 8
    assert int(text.replace(" ", ""), 16) == state
    assert policy_tables.bits(1).endswith("0000 0001")


def test_record_holds_the_states_before_and_after() -> None:
    generator = np.random.Generator(np.random.PCG64(7))
    before = generator.bit_generator.state["state"]["state"]
    uniform = generator.random()
    after = generator.bit_generator.state["state"]["state"]
    selection = policy_tables.choose_for(ROW, TOP_3, drawn(7))
    table = policy_tables.record(VOCABULARY, selection, 7, 0)
    values = dict(zip(table["what"], table["value"], strict=True))
    assert values["state before"] == policy_tables.bits(before)
    assert values["state after"] == policy_tables.bits(after)
    assert values["uniform number u"] == repr(uniform)
    assert values["replayed from this record"] == "the same record, bit by bit"
    assert values["state changed"] == "yes, by one draw"


def test_record_of_greedy_draws_nothing() -> None:
    selection = policy_tables.choose_for(ROW, Policy(GREEDY), drawn())
    table = policy_tables.record(VOCABULARY, selection, 41, 0)
    values = dict(zip(table["what"], table["value"], strict=True))
    assert values["uniform number u"] == "none drawn"
    assert values["state before"] == values["state after"]
    assert values["state changed"] == "no"


def test_record_that_was_changed_does_not_replay() -> None:
    draw = drawn()
    forged = policy_tables.choose_for(ROW, TOP_3, draw._replace(uniform=0.1))
    table = policy_tables.record(VOCABULARY, forged, 41, 0)
    assert table["value"].tolist()[-1] == "another record"


def test_other_policies_get_the_same_number() -> None:
    draw = drawn()
    selection = policy_tables.choose_for(ROW, TOP_3, draw)
    others = policy_tables.neighbours(TOP_3, 5)
    table = policy_tables.other_policies(VOCABULARY, selection, draw, others)
    assert table["policy"][0] == "sample, temperature 1, top-k 3"
    sampled = table[table["drawn"] == "1 number"]
    assert set(sampled["uniform"]) == {draw.uniform}
    assert table["same state before"].all()
    greedy = table[table["policy"] == "greedy"].iloc[0]
    assert (greedy["drawn"], greedy["uniform"], greedy["token"]) == ("none", None, "b")
    assert greedy["state after"] != sampled["state after"].iloc[0]
    assert len(set(sampled["state after"])) == 1


@pytest.mark.parametrize(
    "policy",
    [Policy(GREEDY), TOP_3, Policy(SAMPLE), Policy(SAMPLE, 0.05), Policy(SAMPLE, 5.0, 1, 0.05)],
)
def test_neighbours_are_other_policies_within_the_vocabulary(policy: Policy) -> None:
    for size in (1, 2, 5):
        if policy.top_k is None or policy.top_k <= size:
            found = policy_tables.neighbours(policy, size)
            assert policy not in found
            assert len(set(found)) == len(found) >= 1
            for other in found:
                other.check_vocabulary(size)


def test_every_table_comes_back_from_its_csv() -> None:
    for policy in (TOP_3, Policy(GREEDY)):
        draw = drawn()
        selection = policy_tables.choose_for(ROW, policy, draw)
        others = policy_tables.neighbours(policy, 5)
        for table, schema in (
            (stages(policy), policy_tables.STAGES),
            (policy_tables.record(VOCABULARY, selection, 41, 0), policy_tables.RECORD),
            (
                policy_tables.other_policies(VOCABULARY, selection, draw, others),
                policy_tables.OTHER_POLICIES,
            ),
        ):
            pd.testing.assert_frame_equal(read_csv(write_csv(table, schema), schema), table)
