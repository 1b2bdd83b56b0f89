"""The README's measured table is what the core computes."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(line):
    return [float(n) for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])", line)]


def test_measured_table_in_the_readme_is_what_the_core_computes_now():
    readme = tool("readme")
    text = readme.README.read_text(encoding="utf-8")
    written = text.split(readme.BEGIN)[1].split(readme.END)[0].strip().splitlines()
    computed = readme.measured_lines()
    assert len(written) == len(computed) == 12
    for line, now in zip(written, computed, strict=True):
        if "cached against full" in line:  # rounding differs from one BLAS kernel to the next
            assert 0 < numbers(line)[-1] <= 5e-6
            assert numbers(line)[0] == numbers(now)[0] == 4.7684e-6
        elif "logit error" in line:
            assert numbers(line)[0] == numbers(now)[0]
            assert abs(numbers(line)[-1] - numbers(now)[-1]) < 1e-4
        else:
            assert line == now


def test_pictures_named_in_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(named) >= 2
    for path in named:
        assert (ROOT / path).is_file(), path


def test_commands_in_the_readme_are_those_of_the_command_line():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"python -m tinydec (\w+)", text))
    from tinydec.cli.parser import build_parser

    known: set[str] = set()
    for action in build_parser()._actions:
        choices = list(action.choices or ())
        known |= set(choices) if "audit" in choices else set()
    assert named == known
