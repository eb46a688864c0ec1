// A table whose rows open and whose heads order it. All texts arrive as data and become text nodes.
// Keys are those of a grid (WAI-ARIA): one stop of Tab, arrows move, Enter or Space opens the row or orders by the head.

const DRAGGED_PX = 4; // who drags so far over a text marks it, to copy it

function cell(tag, role, column, text) {
  const made = document.createElement(tag);
  made.setAttribute("role", role);
  made.tabIndex = -1;
  made.className = [column.number ? "number" : "", column.grows ? "grows" : ""].join(" ").trim();
  if (!column.grows) made.style.maxWidth = `${column.width}px`;
  made.textContent = text;
  return made;
}

function headLine(data, order) {
  const line = document.createElement("tr");
  line.setAttribute("role", "row");
  data.columns.forEach((column, place) => {
    const head = cell("th", "columnheader", column, column.title);
    head.scope = "col";
    if (column.orders) {
      head.classList.add("orders");
      head.setAttribute("aria-sort", column.sorted || "none");
      head.onclick = () => order(place);
    }
    line.append(head);
  });
  return line;
}

function dot(colour) {
  const made = document.createElement("span");
  made.className = "dot";
  made.style.background = colour;
  return made;
}

function rowLine(data, row, place, open) {
  const line = document.createElement("tr");
  line.setAttribute("role", "row");
  line.className = [row.tone, place === data.chosen ? "chosen" : "", data.opens ? "opens" : ""].join(" ").trim();
  if (data.opens) line.setAttribute("aria-selected", place === data.chosen);
  row.cells.forEach((text, at) => {
    const made = cell("td", "gridcell", data.columns[at], text);
    made.title = text;
    if (row.dot && at === 0) made.prepend(dot(row.dot));
    if (data.opens) made.onclick = () => open(line, place, at);
    line.append(made);
  });
  return line;
}

function place(lines, active) {
  const row = lines.findIndex((line) => line.contains(active));
  return row < 0 ? null : [row, [...lines[row].children].indexOf(active)];
}

function moved(lines, [row, column], key, page, whole) {
  const last = lines[0].children.length - 1;
  const bottom = lines.length - 1;
  const next = {
    ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1],
    PageDown: [row + page, column], PageUp: [row - page, column],
    Home: [whole ? 0 : row, 0], End: [whole ? bottom : row, last],
  }[key];
  return next && [Math.min(Math.max(next[0], 0), bottom), Math.min(Math.max(next[1], 0), last)];
}

// The row in sight, below the head that stays where it is; the page does not move.
function show(root, headPx, line) {
  const [top, bottom] = [line.offsetTop - headPx, line.offsetTop + line.offsetHeight];
  if (top < root.scrollTop) root.scrollTop = top;
  else if (bottom > root.scrollTop + root.clientHeight) root.scrollTop = bottom - root.clientHeight;
}

export default function table({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".table");
  const active = () => parentElement.activeElement || document.activeElement;
  const before = place([...root.querySelectorAll("tr")], active());
  const same = root.dataset.version === data.version;
  const scrolled = [root.scrollTop, root.scrollLeft];
  root.dataset.version = data.version;
  root.style.maxHeight = `${data.most_px}px`;

  let pressedAt = [0, 0];
  let dragged = false;
  root.onmousedown = (event) => { pressedAt = [event.clientX, event.clientY]; };
  root.onmouseup = (event) => {
    dragged = Math.hypot(event.clientX - pressedAt[0], event.clientY - pressedAt[1]) > DRAGGED_PX;
  };
  const order = (column) => setTriggerValue("ordered", [data.version, column]);
  const open = (line, row, column) => {
    if (dragged) return;
    for (const other of lines) other.classList.toggle("chosen", other === line);
    setTriggerValue("opened", [data.version, row, column]);
  };

  const made = document.createElement("table");
  made.setAttribute("role", "grid");
  made.setAttribute("aria-label", data.title);
  const head = document.createElement("thead");
  const body = document.createElement("tbody");
  head.append(headLine(data, order));
  body.append(...data.rows.map((row, at) => rowLine(data, row, at, open)));
  made.append(head, body);
  root.replaceChildren(made);
  const lines = [...made.querySelectorAll("tr")];

  const stop = (row, column) => {
    for (const one of made.querySelectorAll("[tabindex='0']")) one.tabIndex = -1;
    const target = lines[Math.min(row, lines.length - 1)].children[column] || lines[0].children[0];
    target.tabIndex = 0;
    return target;
  };
  const chosen = data.chosen === null ? 0 : data.chosen;
  [root.scrollTop, root.scrollLeft] = same ? scrolled : [0, scrolled[1]];
  if (before) stop(...before).focus({ preventScroll: true });
  else stop(chosen + 1, 0);
  if (data.chosen !== null) show(root, lines[0].offsetHeight, lines[chosen + 1]);

  made.onfocusin = (event) => {
    const at = place(lines, event.target);
    if (at) stop(...at);
  };
  made.onkeydown = (event) => {
    const at = place(lines, event.target);
    if (!at) return;
    if (event.key === "Enter" || event.key === " ") {
      dragged = false;
      event.target.click();
    } else {
      const page = Math.max(Math.floor(root.clientHeight / lines[0].offsetHeight) - 2, 1);
      const next = moved(lines, at, event.key, page, event.ctrlKey || event.metaKey);
      if (!next) return;
      const target = stop(...next);
      target.focus({ preventScroll: true });
      target.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    event.preventDefault();
    event.stopPropagation();
  };
}
