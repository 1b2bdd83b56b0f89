// Named grids of numbers that can be clicked, walked by keyboard and stepped through frames.
// The DOM stays across updates: where a frame has the shapes of the one before, only text,
// colour and marks change.

function element(tag, attributes, text) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function shapeOf(frame) {
  return JSON.stringify(frame.grids.map((g) => [g.name, g.role, g.rows, g.columns]));
}

function buildGrid(grid) {
  const figure = element('figure', { class: `role-${grid.role}` });
  const caption = element('figcaption');
  const table = element('table', { role: 'grid', 'data-grid': grid.name });
  const head = element('tr', { role: 'row' });
  head.append(element('td', { role: 'presentation' }));
  grid.columns.forEach((c) => head.append(element('th', { scope: 'col', role: 'columnheader' }, c)));
  const thead = element('thead', { role: 'rowgroup' });
  thead.append(head);
  const body = element('tbody', { role: 'rowgroup' });
  grid.rows.forEach((label, r) => {
    const row = element('tr', { role: 'row' });
    row.append(element('th', { scope: 'row', role: 'rowheader' }, label));
    grid.columns.forEach((_, c) => {
      const first = r === 0 && c === 0;
      row.append(element('td', { role: 'gridcell', tabindex: first ? 0 : -1, 'data-r': r, 'data-c': c }));
    });
    body.append(row);
  });
  table.append(thead, body);
  const scroller = element('div', { class: 'scroller' });
  scroller.append(table);
  figure.append(caption, scroller);
  return figure;
}

function fillGrid(figure, grid, selected) {
  figure.querySelector('figcaption').textContent = grid.title;
  figure.querySelector('table').setAttribute('aria-label', grid.title);
  const marked = new Set(grid.marked.map(([r, c]) => `${r},${c}`));
  figure.querySelectorAll('tbody td').forEach((cell) => {
    const r = Number(cell.dataset.r);
    const c = Number(cell.dataset.c);
    const level = grid.levels[r][c];
    cell.textContent = grid.texts[r][c];
    cell.title = grid.exact[r][c];
    cell.style.setProperty('--level', `${Math.round(Math.abs(level) * 100)}%`);
    cell.classList.toggle('negative', level < 0);
    const isMarked = marked.has(`${r},${c}`);
    cell.classList.toggle('marked', isMarked);
    const where = `${grid.rows[r]}, ${grid.columns[c]}`;
    cell.setAttribute('aria-label', `${grid.title}, ${where}: ${grid.exact[r][c] || 'empty'}`
      + (isMarked ? ', marked' : ''));
    const isSelected = selected && selected[0] === grid.name && selected[1] === r && selected[2] === c;
    cell.setAttribute('aria-selected', isSelected ? 'true' : 'false');
  });
}

function show(root) {
  const state = root.state;
  const frame = state.data.frames[state.frame];
  const shape = shapeOf(frame);
  const grids = root.querySelector('.grids');
  if (shape !== state.shape) {
    grids.replaceChildren(...frame.grids.map(buildGrid));
    state.shape = shape;
  }
  frame.grids.forEach((grid, i) => fillGrid(grids.children[i], grid, state.selected));
  const steps = root.querySelector('.steps');
  steps.hidden = state.data.frames.length < 2;
  const start = state.data.frames[state.data.frame].label.split(',')[0];
  const apart = state.frame === state.data.frame ? '' : `; the control above is at ${start}`;
  steps.querySelector('output').textContent = frame.label + apart;
  steps.querySelector('.back').disabled = state.frame === 0;
  steps.querySelector('.next').disabled = state.frame === state.data.frames.length - 1;
}

function focusCell(table, row, column) {
  const cell = table.querySelector(`td[data-r="${row}"][data-c="${column}"]`);
  if (!cell) return;
  table.querySelectorAll('tbody td').forEach((other) => { other.tabIndex = other === cell ? 0 : -1; });
  cell.focus();
}

function onKey(root, event) {
  const cell = event.target.closest('td[data-r]');
  if (!cell) return;
  const table = cell.closest('table');
  const row = Number(cell.dataset.r);
  const column = Number(cell.dataset.c);
  const lastColumn = cell.parentElement.querySelectorAll('td').length - 1;
  const moves = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    Home: [row, 0],
    End: [row, lastColumn],
  };
  if (event.key in moves) {
    focusCell(table, ...moves[event.key]);
  } else if (event.key === 'Enter' || event.key === ' ') {
    choose(root, cell);
  } else {
    return;
  }
  event.preventDefault();
}

function choose(root, cell) {
  const table = cell.closest('table');
  const state = root.state;
  const [row, column] = [Number(cell.dataset.r), Number(cell.dataset.c)];
  state.selected = [table.dataset.grid, row, column];
  show(root);
  focusCell(table, row, column);
  state.send('cell', { grid: table.dataset.grid, row, column, frame: state.frame });
}

function build(root) {
  const steps = element('div', { class: 'steps' });
  const back = element('button', { type: 'button', class: 'back' }, '◀ Back');
  const next = element('button', { type: 'button', class: 'next' }, 'Next step ▶');
  const label = element('output', { 'aria-live': 'polite' });
  steps.append(back, next, label);
  root.replaceChildren(steps, element('div', { class: 'grids' }));
  const move = (by) => {
    root.state.frame = Math.min(Math.max(root.state.frame + by, 0), root.state.data.frames.length - 1);
    show(root);
  };
  back.addEventListener('click', () => move(-1));
  next.addEventListener('click', () => move(1));
  root.addEventListener('keydown', (event) => onKey(root, event));
  root.addEventListener('click', (event) => {
    const cell = event.target.closest('td[data-r]');
    if (cell) choose(root, cell);
  });
}

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector('.root');
  if (!root.state) {
    root.state = { frame: data.frame, sent: data.frame, shape: '' };
    build(root);
  }
  const state = root.state;
  if (data.frame !== state.sent) state.frame = data.frame;
  state.sent = data.frame;
  state.frame = Math.min(state.frame, data.frames.length - 1);
  state.data = data;
  state.selected = data.selected;
  state.send = setTriggerValue;
  show(root);
}
