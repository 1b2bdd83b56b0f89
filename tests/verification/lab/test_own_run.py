"""A run of one's own in the recorded session: its stop tokens count."""

from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy
from tinydec.verification.lab.kill_matrix import laboratory
from tinydec.verification.lab.scenario import Scenario, ScenarioRun

MODEL = load_checkpoint()


def recorded(stop_tokens: tuple[str, ...]):
    run = ScenarioRun("own", ("<bos>",), Policy(), 41, stop_tokens=stop_tokens)
    lab = laboratory(MODEL, Scenario((run,)), 1e-5)
    assert lab.judge(lab.correct).passed
    return lab.correct.runs[0]


def test_stop_token_ends_a_recorded_run_and_the_audit_agrees() -> None:
    ended = recorded(("B",))  # greedy returns A, then B
    assert ended.steps[-1].stop_reason == "stop_token"
    assert ended.returned == MODEL.vocabulary.encode("A B")
    assert ended.stop_token_ids == MODEL.vocabulary.encode("B")
    assert recorded(()).steps[-1].stop_reason == "eos"
    assert recorded(("X",)).returned == recorded(()).returned
