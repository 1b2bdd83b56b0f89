"""A batch as HTML: rows as lanes over time, slots with padding, and who sees which slot."""

from __future__ import annotations

from html import escape

from tinydec.generation.batch_trace import CANCELLED, BatchStep, BatchTrace, RowTrace
from tinydec.generation.slots import Slot, SlotRow, slot_map
from tinydec.model.batch_plan import Plan
from tinydec.model.vocabulary import Vocabulary

#: What is drawn of a larger batch: its last slots, and steps around the current one.
MOST_SLOTS = 10
MOST_STEPS = 8
_MOST_TOKENS = 4

CSS = """
.td-scroll { overflow: auto; max-width: 100%; }
.td-lanes { border-collapse: separate; border-spacing: 2px; font-size: 0.85rem; width: 100%; }
.td-lanes th { font-weight: 600; text-align: left; padding: 0.1rem 0.5rem; white-space: nowrap;
border: 0; }
.td-lanes th .say { font-weight: 400; font-family: var(--td-mono); font-size: 0.8rem; }
.td-lanes td { padding: 0.2rem 0.5rem; border: 0; border-left: 3px solid transparent;
white-space: nowrap; font-family: var(--td-mono); }
.td-lanes td.prefill { background: var(--td-soft); border-left-color: var(--td-key-mark); }
.td-lanes td.decode { background: var(--td-soft); border-left-color: var(--td-cached-mark); }
.td-lanes td.waits, .td-lanes td.none { font-size: 0.8rem; }
.td-lanes td.now { background: color-mix(in srgb, currentColor 14%, transparent); }
.td-lanes .out { color: var(--td-query); font-weight: 600; }
.td-lanes .end { font-family: inherit; font-size: 0.78rem; font-weight: 600; margin-left: 0.35rem;
padding: 0 0.35rem; border-radius: 0.4rem; border: 1.5px solid var(--td-cached-mark); }
.td-lanes .end.cut { border-color: var(--td-error-mark); }
.td-maps { display: flex; flex-wrap: wrap; gap: 0.6rem 1.4rem; align-items: flex-start; }
.td-map { min-width: 0; max-width: 100%; }
.td-map h3 { font-size: 0.95rem !important; margin: 0; padding: 0 0 0.1rem !important; }
.td-map table { border-collapse: separate; border-spacing: 3px; font-family: var(--td-mono);
font-size: 0.8rem; margin: 0; }
.td-map th { font-weight: 400; padding: 0 0.25rem; border: 0; text-align: center;
white-space: nowrap; }
.td-map th[scope=row] { text-align: right; font-weight: 600; }
.td-map td { border: 1.5px solid transparent; border-radius: 0.3rem; text-align: center;
padding: 0.05rem 0.3rem; min-width: 2.6rem; line-height: 1.25; background: var(--td-soft); }
.td-map td small { display: block; font-size: 0.72rem; }
.td-map td.new { border-color: var(--td-key-mark); }
.td-map td.foreign { border-color: var(--td-error-mark); border-style: dashed; }
.td-map td.pad { background: repeating-linear-gradient(135deg, var(--td-soft) 0 5px,
transparent 5px 9px); }
.td-map td.nothing { background: none; }
.td-map td.sees { background: color-mix(in srgb, var(--td-query-mark) 26%, transparent); }
.td-map.mask td { min-width: 1.6rem; padding: 0 0.2rem; }
"""


def lanes_html(vocabulary: Vocabulary, trace: BatchTrace, current: int) -> str:
    """Return rows as lanes over the batch's steps.

    Args:
        vocabulary: names the tokens.
        trace: the batch.
        current: place in ``trace.steps`` to point at.
    """
    window = shown_steps(len(trace.steps), current)
    steps = [(place, trace.steps[place]) for place in window]
    head = "".join(_step_head(step, place == current) for place, step in steps)
    body = "".join(
        f'<tr><th scope="row">{escape(row.request_id)} <span class="say">'
        f"{escape(_short(vocabulary, row.request.prompt_ids))}</span></th>"
        + "".join(_lane(vocabulary, row, step, place == current) for place, step in steps)
        + "</tr>"
        for row in trace.rows
    )
    label = f"{len(trace.rows)} rows over {len(trace.steps)} batch steps"
    return (
        f'<style>{CSS}</style><div class="td-scroll" tabindex="0" role="region" '
        f'aria-label="{label}"><table class="td-lanes"><thead><tr><th scope="col">row, prompt</th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def shown_steps(count: int, current: int, most: int = MOST_STEPS) -> range:
    """Return the steps to draw: all, or a window of ``most`` that holds the current one."""
    first = min(max(current - most // 2, 0), max(count - most, 0))
    return range(first, min(first + most, count))


def _step_head(step: BatchStep, current: bool) -> str:
    mark = "▼ " if current else ""
    aria = ' aria-current="step"' if current else ""
    return f'<th scope="col"{aria}>{mark}{step.index} · {step.phase}</th>'


def _lane(vocabulary: Vocabulary, row: RowTrace, step: BatchStep, current: bool) -> str:
    now = " now" if current else ""
    if step.index in row.batch_steps:
        record = row.trace.steps[row.batch_steps.index(step.index)]
        consumed = _short(vocabulary, record.consumed_ids)
        returned = escape(vocabulary.tokens[record.returned_id])
        end = f'<span class="end">{escape(record.stop_reason)}</span>' if record.stop_reason else ""
        return (
            f'<td class="{step.phase}{now}">{escape(consumed)} → '
            f'<span class="out">{returned}</span>{end}</td>'
        )
    if row.request_id in step.request_ids:
        return f'<td class="{step.phase}{now}">not finite<span class="end cut">✗</span></td>'
    if row.request_id in step.cache_rows:
        return f'<td class="waits{now}">waits</td>'
    left = row.request_id in step.left and row.end == CANCELLED
    text = '<span class="end cut">cancelled</span>' if left else ""
    return f'<td class="none{now}">{text}</td>'


def _short(vocabulary: Vocabulary, ids: tuple[int, ...]) -> str:
    shown = ids[-_MOST_TOKENS:]
    more = "… " if len(shown) < len(ids) else ""
    return more + vocabulary.decode(shown)


# Slots -------------------------------------------------------------------------------------------


def slots_html(vocabulary: Vocabulary, traces: dict[str, BatchTrace], place: int) -> str:
    """Return what every slot holds after one step, one grid for each layout."""
    maps = "".join(
        _map(vocabulary, layout, slot_map(trace, place))
        for layout, trace in traces.items()
        if place < len(trace.steps)
    )
    return f'<style>{CSS}</style><div class="td-maps">{maps}</div>'


def _map(vocabulary: Vocabulary, layout: str, rows: tuple[SlotRow, ...]) -> str:
    count = max((len(row.slots) for row in rows), default=0)
    slots = range(max(0, count - MOST_SLOTS), count)
    head = "".join(f'<th scope="col">{slot}</th>' for slot in slots)
    body = "".join(
        f'<tr><th scope="row">{escape(row.request_id)}</th>'
        + "".join(_slot(vocabulary, row, row.slots[slot]) for slot in slots)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="td-map"><h3>{escape(layout)}</h3><div class="td-scroll" tabindex="0" '
        f'role="region" aria-label="Slots, {escape(layout)} layout"><table><thead><tr>'
        f'<th scope="col">slot</th>{head}</tr></thead><tbody>{body}</tbody></table></div></div>'
    )


def _slot(vocabulary: Vocabulary, row: SlotRow, slot: Slot) -> str:
    if slot.written_by is None:
        return '<td class="nothing">·</td>'
    classes = ["new"] if slot.new else []
    foreign = slot.written_by != row.request_id
    note = "" if slot.position is None else f"<small>pos {slot.position}</small>"
    if foreign:
        classes.append("foreign")
        note = f"<small>by {escape(slot.written_by)}</small>"
    if slot.seen:
        classes.append("sees")
    if slot.padding:
        classes.append("pad")
        return f'<td class="{" ".join(classes)}">pad{note}</td>'
    token = "?" if slot.token_id is None else escape(vocabulary.tokens[slot.token_id])
    return f'<td class="{" ".join(classes)}">{token}{note}</td>'


# Masks -------------------------------------------------------------------------------------------


def masks_html(vocabulary: Vocabulary, step: BatchStep, layout: str) -> str:
    """Return for each row of one pass which query sees which slot.

    A filled circle: the query sees the slot. A hatched line: a query computed for padding.
    """
    grids = "".join(
        _mask(vocabulary, name, step.plan, number) for number, name in enumerate(step.request_ids)
    )
    return (
        f'<style>{CSS}</style><div class="td-maps" aria-label="Masks, {escape(layout)} layout" '
        f'role="group">{grids}</div>'
    )


def _mask(vocabulary: Vocabulary, name: str, plan: Plan, number: int) -> str:
    ids, pads = plan.token_ids[number].tolist(), plan.query_pads[number].tolist()
    queries = [q for q, token in enumerate(ids) if token >= 0][-MOST_SLOTS:]
    count = plan.mask.shape[2]
    slots = range(max(0, count - MOST_SLOTS), count)
    head = "".join(f'<th scope="col">{slot}</th>' for slot in slots)
    body = ""
    for query in queries:
        token = "pad" if pads[query] else escape(vocabulary.tokens[ids[query]])
        cells = "".join(_sight(bool(plan.mask[number, query, s]), pads[query]) for s in slots)
        body += f'<tr><th scope="row">{token}</th>{cells}</tr>'
    return (
        f'<div class="td-map mask"><h3>{escape(name)}</h3><div class="td-scroll" tabindex="0" '
        f'role="region" aria-label="Mask of row {escape(name)}"><table><thead><tr>'
        f'<th scope="col">query</th>{head}</tr></thead><tbody>{body}</tbody></table></div></div>'
    )


def _sight(sees: bool, pad: bool) -> str:
    classes = "pad" if pad else "sees" if sees else "nothing"
    return f'<td class="{classes}">{"●" if sees else "–"}</td>'
