// A tree of names with figures beside them. All texts arrive as data and become text nodes.

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function cell(tag, role, className, text) {
  const made = element(tag, className, text);
  made.setAttribute("role", role);
  return made;
}

function headLine(data) {
  const line = element("div", "line head");
  line.setAttribute("role", "row");
  line.append(cell("span", "columnheader", "name", data.title));
  for (const title of data.columns) line.append(cell("span", "columnheader", "figure", title));
  return line;
}

function noteLine(row) {
  const line = element("div", "line note");
  line.setAttribute("role", "row");
  const name = cell("span", "gridcell", "name", row.label);
  name.style.paddingInlineStart = `${1.6 + row.depth * 1.1}rem`;
  line.append(name);
  return line;
}

function branchLine(row, toggle, choose) {
  const line = element("div", `line branch ${row.chosen ? "chosen" : ""}`.trim());
  line.setAttribute("role", "row");
  line.setAttribute("aria-level", row.level);
  line.setAttribute("aria-selected", row.chosen);
  if (row.opens !== null) line.setAttribute("aria-expanded", row.opens);
  line.tabIndex = -1;
  line.dataset.key = row.key;
  const name = cell("span", "gridcell", "name");
  name.style.paddingInlineStart = `${0.3 + row.depth * 1.1}rem`;
  const mark = element("span", `mark ${row.opens === null ? "" : row.opens ? "open" : "closed"}`.trim());
  mark.setAttribute("aria-hidden", "true");
  if (row.opens !== null) {
    mark.addEventListener("click", (event) => {
      event.stopPropagation();
      toggle(row.key);
    });
  }
  name.append(mark, element("span", "label", row.label));
  name.title = row.label;
  line.append(name);
  for (const text of row.cells) line.append(cell("span", "gridcell", "figure", text));
  line.addEventListener("click", () => choose(row.key));
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") choose(row.key);
    else if (event.key === "ArrowRight" && row.opens === false) toggle(row.key);
    else if (event.key === "ArrowLeft" && row.opens) toggle(row.key);
    else return;
    event.preventDefault();
  });
  return line;
}

export default function tree({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".tree");
  const active = parentElement.activeElement || document.activeElement;
  const focused = active && active.dataset && root.contains(active) ? active.dataset.key : undefined;
  const scrolled = root.scrollTop;
  const first = !root.childElementCount;
  root.setAttribute("role", "treegrid");
  root.setAttribute("aria-label", data.title);
  root.style.setProperty("--columns", data.columns.length);
  const toggle = (key) => setTriggerValue("toggled", key);
  const choose = (key) => setTriggerValue("chosen", key);
  const lines = data.lines.map((row) => (row.key === null ? noteLine(row) : branchLine(row, toggle, choose)));
  root.replaceChildren(headLine(data), ...lines);
  const chosen = root.querySelector(".chosen");
  root.scrollTop = first && chosen ? chosen.offsetTop - root.offsetTop - root.clientHeight / 2 : scrolled;
  const branches = lines.filter((line) => line.dataset.key !== undefined);
  const again = branches.find((line) => line.dataset.key === focused);
  const stop = again || chosen || branches[0];
  if (stop) stop.tabIndex = 0; // one stop of the Tab key for the whole tree; arrows move inside
  if (again) again.focus({ preventScroll: true });
  root.onkeydown = (event) => {
    const at = branches.indexOf(event.target);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: branches.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (!branches[next]) return;
    if (branches[at]) branches[at].tabIndex = -1;
    branches[next].tabIndex = 0;
    branches[next].focus();
  };
}
