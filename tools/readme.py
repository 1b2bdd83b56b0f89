"""Write the measured part of README.md: published values beside what is measured at this moment.

Usage: python tools/readme.py

Replaces the lines between the two ``measured`` comments. A test computes the same lines and
holds the README against them.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tinydec.evidence.audit import run_audit  # noqa: E402
from tinydec.evidence.published import compare_published  # noqa: E402
from tinydec.model.storage import load_checkpoint  # noqa: E402

README = ROOT / "README.md"
BEGIN = "<!-- measured: python tools/readme.py -->"
END = "<!-- end of measured -->"


def measured_lines() -> list[str]:
    """Return the table's lines, computed now."""
    report = run_audit(load_checkpoint())
    lines = ["| | published | measured here |", "| --- | --- | --- |"]
    for row in compare_published(report):
        published = row.published
        lines.append(f"| {published.quantity} | {_cell(published.value)} | {_cell(row.measured)} |")
    return lines


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    return f"`{value}`" if isinstance(value, str) else f"{value:.6g}"


def main() -> None:
    """Replace the measured lines."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    block = "\n".join([BEGIN, *measured_lines(), END])
    README.write_text(before + block + after, encoding="utf-8")


if __name__ == "__main__":
    main()
