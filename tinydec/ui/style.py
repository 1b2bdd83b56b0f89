"""The app's CSS: palette as variables, token chips, cards, tables, compact header."""

from __future__ import annotations

from tinydec.figures.palette import COLOURS
from tinydec.figures.style import MONOSPACE, PLOTLY_CSS

_VARIABLES = "\n".join(
    f"--td-{name}: {colour.css}; --td-{name}-mark: {colour.mark};"
    for name, colour in COLOURS.items()
)

# `light-dark()` follows the theme at once when a visitor switches it: Streamlit sets color-scheme.
APP_CSS = f"""
.stApp {{
{_VARIABLES}
--td-mono: {MONOSPACE};
--td-line: light-dark(rgba(49, 51, 63, 0.16), rgba(250, 250, 250, 0.18));
--td-soft: light-dark(rgba(49, 51, 63, 0.06), rgba(250, 250, 250, 0.08));
}}
.stAppHeader {{ background: transparent; height: 2.75rem; min-height: 0; pointer-events: none; }}
.stAppHeader button, .stAppHeader a {{ pointer-events: auto; }}
.stMainBlockContainer {{ padding: 1.5rem 2.5rem 4rem; max-width: 1180px; }}
.stMainBlockContainer h1 {{ font-size: 1.75rem; padding: 0 0 0.5rem; font-weight: 650; }}
.stMainBlockContainer h2 {{ font-size: 1.25rem; padding: 0.4rem 0 0.3rem; }}
.stMainBlockContainer h3 {{ font-size: 1.05rem; padding: 0.3rem 0 0; }}
.stMainBlockContainer [data-testid="stCaptionContainer"],
.stMainBlockContainer [data-testid="stCaptionContainer"] p {{ color: inherit; opacity: 1; }}
.stMainBlockContainer input, .stMainBlockContainer code {{ font-family: var(--td-mono); }}
.stApp button[kind="primary"]:not(:disabled) p {{ color: light-dark(#ffffff, #14161b); }}
/* A panel is a button among the controls; open, it is a row below them. */
[class*="st-key-_panel-"] {{ flex: 0 0 auto; width: auto; }}
[class*="st-key-_panel-"]:has(details[open]) {{ flex: 1 0 100%; order: 1; }}
[class*="st-key-_panel-"] [data-testid="stExpanderDetails"] {{ padding: 0 0.75rem 0.5rem; }}
[class*="st-key-_panel-"] summary {{ min-height: 2.4rem; padding: 0.3rem 0.7rem; gap: 0.4rem; }}
.stMainBlockContainer [data-testid="stButtonGroup"] button {{ min-height: 2.5rem; }}
.st-key-controls {{ border-bottom: 1px solid var(--td-line); padding-bottom: 0.75rem; }}
@media (max-width: 640px) {{
.stMainBlockContainer {{ padding: 2.75rem 1rem 4rem; }}
/* A row of numbers by token does not fit: stand it up, tokens below each other. */
.stMarkdown table {{ display: flex; }}
.stMarkdown thead, .stMarkdown tbody {{ display: flex; }}
.stMarkdown tr {{ display: flex; flex-direction: column; }}
.stMarkdown th, .stMarkdown td {{ height: 1.8rem; white-space: nowrap;
padding: 0.1rem 0.6rem !important; }}
}}
{PLOTLY_CSS}
ul.td-notes {{ margin: 0; padding: 0.4rem 0.8rem; list-style: none; font-size: 0.9rem;
border-left: 4px solid var(--td-error-mark); background: var(--td-soft); }}
.td-contract {{ font-size: 1.05rem; margin: 0; max-width: 62rem; line-height: 1.5; }}
.td-look {{ margin: 0; max-width: 62rem; line-height: 1.5; }}
.td-look b {{ font-weight: 650; }}
.td-numbers {{ font-family: var(--td-mono); font-size: 0.9rem; margin: 0; white-space: pre-wrap;
overflow-wrap: anywhere; }}
.td-chips {{ display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: flex-start;
list-style: none; }}
.td-chips li, .td-cards li, .td-notes li {{ margin: 0; padding: 0; }}
ul.td-chips, ul.td-cards {{ margin: 0; padding: 0; }}
.td-chips li {{ text-align: center; font-size: 0.75rem; line-height: 1.2; }}
.td-chip {{ display: inline-block; font-family: var(--td-mono); font-size: 0.9rem; line-height: 1.5;
padding: 0.05rem 0.5rem; border-radius: 0.4rem; border: 1.5px solid transparent;
max-width: 16rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.td-chip.prompt {{ background: var(--td-soft); border-color: var(--td-full-mark); }}
.td-chip.consumed {{ background: var(--td-soft); border-color: var(--td-cached-mark);
color: var(--td-cached); }}
.td-chip.returned {{ border: 1.5px dashed var(--td-query-mark); color: var(--td-query); }}
.td-chip.plain {{ background: var(--td-soft); }}
.td-chip.current {{ outline: 2px solid currentColor; outline-offset: 2px; margin: 0 0.2rem; }}
.td-cards {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
gap: 0.75rem; list-style: none; }}
ul.td-cards li {{ border-top: 3px solid var(--td-full-mark); padding: 0.5rem 0.1rem 0; }}
ul.td-cards li.good {{ border-color: var(--td-cached-mark); }}
ul.td-cards li.bad {{ border-color: var(--td-error-mark); }}
.td-cards .name {{ font-size: 0.85rem; }}
.td-cards .value {{ font-family: var(--td-mono); font-size: 1.25rem; line-height: 1.35;
overflow-wrap: anywhere; }}
.td-cards .good .verdict {{ color: var(--td-cached); }}
.td-cards .bad .verdict {{ color: var(--td-error); }}
.td-cards .verdict {{ font-size: 0.85rem; font-weight: 600; }}
/* Cards with links are containers: six in a row beside the sidebar, two on a phone. */
:has(> [class*="st-key-td-card-"]) {{ flex: 1 1 8.1rem; width: auto; min-width: 0; }}
[class*="st-key-td-card-"] {{ padding: 0.25rem 0.1rem 0;
border-top: 3px solid var(--td-full-mark); }}
[class*="st-key-td-card-"]:has(.td-card.good) {{ border-color: var(--td-cached-mark); }}
[class*="st-key-td-card-"]:has(.td-card.bad) {{ border-color: var(--td-error-mark); }}
[class*="st-key-td-card-"] a {{ padding: 0; }}
[class*="st-key-td-card-"] a p {{ font-size: 0.85rem; text-decoration: underline;
text-underline-offset: 0.2em; }}
.td-card .value {{ font-family: var(--td-mono); font-size: 1.1rem; line-height: 1.35;
overflow-wrap: anywhere; }}
.td-card .verdict {{ font-size: 0.85rem; font-weight: 600; }}
.td-card.good .verdict {{ color: var(--td-cached); }}
.td-card.bad .verdict {{ color: var(--td-error); }}
.td-table {{ overflow: auto; max-height: 26rem; border-top: 1px solid var(--td-line);
border-bottom: 1px solid var(--td-line); }}
/* Shadows at the sides where more columns are hidden: the covers move along, the shadows stay. */
.td-table {{ --td-page: light-dark(#ffffff, #14161b);
background: linear-gradient(90deg, var(--td-page) 40%, transparent) 0 0 / 2.5rem 100% local,
linear-gradient(270deg, var(--td-page) 40%, transparent) 100% 0 / 2.5rem 100% local,
linear-gradient(90deg, light-dark(#0004, #fff4), transparent) 0 0 / 0.8rem 100% scroll,
linear-gradient(270deg, light-dark(#0004, #fff4), transparent) 100% 0 / 0.8rem 100% scroll;
background-repeat: no-repeat; }}
.td-table table {{ border-collapse: collapse; width: 100%; font-size: 0.85rem; margin: 0; }}
.td-table caption {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
clip-path: inset(50%); }}
.td-table th {{ position: sticky; top: 0; text-align: left; font-weight: 600;
padding: 0.35rem 0.6rem; white-space: nowrap; border: 0;
background: light-dark(#f7f8fa, #1a1d25); }}
.td-table td {{ padding: 0.25rem 0.6rem; border: 0; border-top: 1px solid var(--td-line);
font-family: var(--td-mono); white-space: nowrap; }}
.td-table td.sentence {{ font-family: inherit; white-space: normal; min-width: 14rem; }}
.td-table .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.td-table .good {{ color: var(--td-cached); font-weight: 600; }}
.td-table .bad {{ color: var(--td-error); font-weight: 600; }}
"""
