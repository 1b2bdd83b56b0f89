"""What each page's own URL parameters may be, checked when a visit begins with a link.

The pages bind these parameters to their own widgets, which fall back without a word; here a
value that no widget offers is found first, so that the frame can say so and clean the URL. What
only the run decides (a position that it did not reach) stays with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tinydec.model.checkpoint import Checkpoint


@dataclass(frozen=True)
class Domain:
    """What one parameter may be.

    Attributes:
        expected: in words, for a note.
        default: what runs instead, for a note.
        read: returns the parameters that the text stands for, in the widgets' own spelling, or
            None for a text that they do not know.
    """

    expected: str
    default: str
    read: Callable[[str], Mapping[str, str] | None]


def page_domains(
    url_path: str, checkpoint: Checkpoint, names: Iterable[str] = ()
) -> dict[str, Domain]:
    """Return the domains of a page's parameters, by name.

    Args:
        url_path: of the page.
        checkpoint: the one that runs; some domains are its sizes.
        names: all its parameters; those without a domain here may be anything.
    """
    make = _PAGES.get(url_path)
    return {name: _anything(name) for name in names} | (make(checkpoint) if make else {})


def _anything(name: str) -> Domain:
    return Domain("any text", "", lambda text: {name: text})


def _one_of(name: str, offers: Iterable[object], default: object = None) -> Domain:
    """Return the domain of a list of options, the first of which is the default."""
    texts = [str(offer) for offer in offers]
    return Domain(
        _listed(texts),
        texts[0] if default is None else str(default),
        lambda text: {name: text} if text in texts else None,
    )


def _spelled(name: str, offers: Mapping[str, str], default: str) -> Domain:
    """Return the domain of options that a widget spells in its own words."""
    shown = {**{text: text for text in offers.values()}, **offers}
    return Domain(
        _listed(list(offers.values())),
        default,
        lambda text: {name: shown[text]} if text in shown else None,
    )


def _whole(name: str, low: int, high: int, default: object = None) -> Domain:
    """Return the domain of the integers from ``low`` to ``high``."""

    def read(text: str) -> Mapping[str, str] | None:
        plain = text.isascii() and text.isdigit() and len(text) < 10 and text == str(int(text))
        return {name: text} if plain and low <= int(text) <= high else None

    return Domain(
        f"an integer from {low} to {high}", str(low if default is None else default), read
    )


def _listed(texts: Sequence[str]) -> str:
    listed = " or ".join(texts)
    return listed if len(listed) <= 80 else f"one of {len(texts)} such as {texts[0]}"


# Pages -------------------------------------------------------------------------------------------


def _kv_cache(checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.ui.lessons.kv_controls import AMOUNTS

    config = checkpoint.config
    return {
        "kv_amount": _one_of("kv_amount", AMOUNTS, "1"),
        "kv_layer": _whole("kv_layer", 0, config.n_layer - 1),
        "kv_head": _whole("kv_head", 0, config.n_head - 1),
    }


def _decode_step(checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.model.activations import tensor_names
    from tinydec.ui.lessons.decode_step import NEWEST

    config = checkpoint.config
    widest = max(config.vocab_size, config.n_inner, 3 * config.n_embd, config.n_positions)
    tensors = tensor_names(config.n_layer)
    return {
        "tensor": _one_of("tensor", tensors),
        "position": _one_of("position", (NEWEST, *range(config.n_positions))),
        "head": _whole("head", 0, config.n_head - 1),
        "index": _whole("index", 0, widest - 1),
    }


def _equivalence(checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.ui.equivalence import compute
    from tinydec.ui.equivalence.common import words
    from tinydec.ui.equivalence.views import VIEWS
    from tinydec.verification.faults import DELIBERATE
    from tinydec.verification.prefixes import controlled_prefixes

    cases = controlled_prefixes(checkpoint)
    faults = {fault.name: words(fault.name) for fault in DELIBERATE}
    correct = compute.CORRECT_CACHE
    runs = [compute.run_name(case, p) for case in cases for p in range(1, case.length + 1)]
    return {
        "eq_view": _one_of("eq_view", VIEWS),
        "eq_run": _one_of("eq_run", runs, runs[min(compute.FIRST_RUN, len(runs) - 1)]),
        "eq_cache": _spelled("eq_cache", {correct: words(correct)} | faults, words(correct)),
        "eq_prefix": _one_of("eq_prefix", map(compute.case_label, cases), "the most telling one"),
        "eq_fault": _spelled("eq_fault", faults, list(faults.values())[-1]),
    }


def _memory(_checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.memory.shapes import SHAPES
    from tinydec.ui.memory import compute, controls, models, work
    from tinydec.ui.memory.views import VIEWS

    labels = {name: layout.label for name, layout in compute.presets().items()}
    return {
        "mem_view": _one_of("mem_view", VIEWS),
        "mem_batch": _one_of("mem_batch", controls.BATCHES),
        "mem_model": _spelled("mem_model", labels, labels[models.FIRST]),
        "mem_tokens": _one_of("mem_tokens", models.TOKENS, 4096),
        "mem_gib": _one_of("mem_gib", models.GIBS, 16),
        "mem_block": _one_of("mem_block", models.BLOCKS),
        "mem_shape": _one_of("mem_shape", (compute.OWN, *SHAPES)),
        "mem_prompt": _one_of("mem_prompt", work.LENGTHS),
        "mem_new": _one_of("mem_new", work.LENGTHS, 4),
    }


def _batches(checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.model.batch_cache import LAYOUTS
    from tinydec.ui.lab.batches import LATEST_JOIN, LATEST_LEAVE
    from tinydec.verification.lab.catalogue_batch import BATCH_FAULTS

    longest = 2 * (checkpoint.config.n_positions + LATEST_JOIN)
    return {
        "faults": _faults(("faults",), BATCH_FAULTS),
        "layout": _one_of("layout", LAYOUTS),
        "neighbours": _whole("neighbours", 0, 5, 5),
        "joins": _whole("joins", 0, LATEST_JOIN),
        "leaves": _one_of("leaves", ("the end", *range(1, LATEST_LEAVE + 1))),
        "batch_step": _whole("batch_step", 0, longest),
    }


def _audit(_checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.verification.faults import FAULTS

    return {
        "faults": _faults(("faults", "second"), FAULTS),
        "second": _faults(("second",), FAULTS),
        "stage": _whole("stage", 0, 6, 6),
    }


def _fault_lab(_checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.ui.lab.lab_page import MAIN_FORM, MODES
    from tinydec.ui.lab.mystery import CASES
    from tinydec.verification.diagnosis import SYMPTOMS
    from tinydec.verification.faults import FAULTS

    forms = [MAIN_FORM, *dict.fromkeys(form for fault in FAULTS for form in fault.variants)]
    return {
        "faults": _faults(("faults",), FAULTS),
        "lab": _one_of("lab", MODES),
        "variant": _one_of("variant", forms),
        "reveal": _one_of("reveal", ("false", "true")),
        "symptom": _one_of("symptom", [symptom.observation for symptom in SYMPTOMS]),
        "case": _whole("case", 1, CASES),
    }


def _review(_checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.ui.exercises.catalogue import TOPICS

    return {"topic": _one_of("topic", TOPICS)}


def _evidence(_checkpoint: Checkpoint) -> dict[str, Domain]:
    from tinydec.evidence.registry import TABLES
    from tinydec.ui.evidence import views

    return {
        "ev_view": _one_of("ev_view", (views.TABLES, views.MANIFEST_VIEW)),
        "ev_table": _one_of("ev_table", TABLES, views.FIRST_TABLE),
    }


_PAGES: Mapping[str, Callable[[Checkpoint], dict[str, Domain]]] = {
    "kv_cache": _kv_cache,
    "decode_step": _decode_step,
    "equivalence": _equivalence,
    "memory": _memory,
    "batches": _batches,
    "audit": _audit,
    "fault_lab": _fault_lab,
    "review": _review,
    "evidence": _evidence,
}


def _faults(names: Sequence[str], faults: Sequence[object]) -> Domain:
    """Return the domain of faults named by id, by name or by both, one for each control.

    ``?faults=F19``, ``?faults=F19 F21`` (as a RunSpec spells it) and ``F19 wrong-layer`` (as the
    control does) are all read.
    """
    from tinydec.evidence.lab_tables import named
    from tinydec.ui.lab.choices import NONE

    by_word = {
        word: named(fault)  # type: ignore[arg-type]
        for fault in faults
        for word in (fault.id, fault.name)  # type: ignore[attr-defined]
    }

    def read(text: str) -> Mapping[str, str] | None:
        words = text.replace(",", " ").split()
        if words in ([], [NONE]):
            return {}
        found = list(dict.fromkeys(by_word.get(word, "") for word in words))
        if "" in found or len(found) > len(names):
            return None
        return dict(zip(names, found, strict=False))

    return Domain(f"a fault such as {next(iter(by_word))}", "none", read)
