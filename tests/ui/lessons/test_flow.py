"""One turn of the loop as boxes."""

import re

from tests.generation.decoders import decoder
from tinydec.generation.generate import generate
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.config import ModelConfig
from tinydec.model.storage import load_checkpoint
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import SAMPLE, Policy, RunSpec
from tinydec.ui.lessons.flow import flow_html

SHIPPED = load_checkpoint()
VOCABULARY = SHIPPED.vocabulary


def chips(html: str, label: str) -> list[tuple[str, str]]:
    part = html.split(f'aria-label="{label}">')[1].split("</ul>")[0]
    return re.findall(r'class="td-chip (\w+)" title="([^"]*)"', part)


def test_roles_tell_prompt_consumed_and_returned_tokens_apart() -> None:
    trace = generate(SHIPPED, RunSpec(prompt=("<bos>", "A")))  # B D <eos>
    html = flow_html(VOCABULARY, trace, 1)
    assert chips(html, "Prefix") == [
        ("prompt", "&lt;bos&gt;"), ("prompt", "A"), ("consumed", "B"),
    ]  # fmt: skip
    assert chips(html, "Next token") == [("returned", "D")]
    assert chips(html, "Extended prefix") == [*chips(html, "Prefix"), ("returned", "D")]


def test_boxes_name_leader_and_draw() -> None:
    trace = generate(SHIPPED, RunSpec(policy=Policy(SAMPLE, 1.0, 3)))
    html = flow_html(VOCABULARY, trace, 0)
    assert f"u = {trace.steps[0].selection.uniform:.4f}" in html
    assert "A leads: 4.190" in html  # the highest logit, not the selected Y
    assert "Policy: sample" in html
    assert "u = " not in flow_html(VOCABULARY, generate(SHIPPED, RunSpec()), 0)


def test_long_prefix_shows_its_end() -> None:
    checkpoint = decoder(ModelConfig(7, 29, 6, 1, 3, 11))
    trace = generate(checkpoint, RunSpec(prompt=("t3",), max_new_tokens=13, dtype="float64"))
    html = flow_html(checkpoint.vocabulary, trace, 12)
    assert chips(html, "Prefix")[0] == ("plain", "… 5 more")
    assert len(chips(html, "Prefix")) == 1 + 8


def test_tokens_are_escaped() -> None:
    plain = decoder()
    names = ("<img/src=x>", *(f"<b{i}>" for i in range(6)))
    checkpoint = Checkpoint.build(plain.config, Vocabulary(names), plain.tensors)
    trace = generate(checkpoint, RunSpec(prompt=(names[0],), dtype="float64"))
    html = flow_html(checkpoint.vocabulary, trace, 0)
    assert "<img" not in html
    assert "<b0" not in html
