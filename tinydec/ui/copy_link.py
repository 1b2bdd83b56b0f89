"""The "copy link" control: the page's address, with a field to copy it from by hand."""

from __future__ import annotations

import streamlit as st

_HTML = """
<div class="root"></div>
"""

_CSS = """
.root { font-family: var(--st-font); color: var(--st-text-color); display: grid; gap: 0.5rem; }
label { font-size: 0.875rem; display: grid; gap: 0.25rem; }
input { font: 0.85rem ui-monospace, Menlo, Consolas, monospace; padding: 0.4rem 0.5rem;
  color: inherit; background: transparent; border-radius: 0.4rem; width: 100%;
  box-sizing: border-box; border: 1px solid currentColor; }
button { font: inherit; font-size: 0.9rem; padding: 0.4rem 0.75rem; border-radius: 0.4rem;
  border: 1px solid currentColor; background: transparent; color: inherit; cursor: pointer; }
input:focus-visible, button:focus-visible { outline: 2px solid var(--st-primary-color);
  outline-offset: 2px; }
"""

# The clipboard is only there on https and on localhost; on plain http the field is selected for
# Ctrl+C. The address is read at the click and while the control is open, as the URL changes
# without a message to the component.
_JS = """
export default function ({ parentElement }) {
  const root = parentElement.querySelector('.root');
  if (!root.firstChild) {
    root.innerHTML = '<label>Link to this view<input readonly></label>'
      + '<button type="button">Copy link</button><span role="status"></span>';
    const field = root.querySelector('input');
    const button = root.querySelector('button');
    const status = root.querySelector('span');
    field.addEventListener('focus', () => field.select());
    button.addEventListener('click', async () => {
      field.value = window.location.href;
      try {
        await navigator.clipboard.writeText(field.value);
        status.textContent = 'Copied.';
      } catch {
        field.focus();
        field.select();
        const done = document.execCommand && document.execCommand('copy');
        status.textContent = done ? 'Copied.' : 'Press Ctrl+C to copy the selected link.';
      }
    });
  }
  const field = root.querySelector('input');
  field.value = window.location.href;
  const timer = window.setInterval(() => {
    if (field.value !== window.location.href) {
      field.value = window.location.href;
      root.querySelector('span').textContent = '';
    }
  }, 250);
  return () => window.clearInterval(timer);
}
"""

_component = st.components.v2.component("tinydec.copy_link", html=_HTML, css=_CSS, js=_JS)


def copy_link(*, key: str) -> None:
    """Draw the address of this view with a button that copies it."""
    _component(key=key)
