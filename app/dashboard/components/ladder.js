// The flow view: one line for each message between client and server. All texts arrive as data and become text nodes.

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function arrow(row) {
  const way = element("span", `way ${row.from_client ? "to-server" : "to-client"}`);
  way.append(element("span", "label", row.label), element("span", "shaft"));
  return way;
}

function messageLine(row, choose) {
  const line = element("button", `row message ${row.tone || ""} ${row.chosen ? "chosen" : ""}`.trim());
  line.type = "button";
  line.setAttribute("aria-pressed", row.chosen);
  line.append(element("span", "time", row.time), arrow(row), element("span", "latency", row.latency), element("span", "detail", row.detail));
  line.title = row.hint;
  line.addEventListener("click", () => choose(row.id));
  return line;
}

function remarkLine(row) {
  const line = element("div", `row remark ${row.tone}`);
  line.append(element("span", "time", row.time), element("span", "text", row.label));
  return line;
}

function ends(data) {
  const head = element("div", "row ends");
  const between = element("span", "between");
  between.append(element("span", "", data.client), element("span", "", data.server));
  head.append(element("span", "time", "time"), between, element("span", "latency", "latency"), element("span", "detail", "packets, bytes"));
  return head;
}

export default function ladder({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".ladder");
  const choose = (id) => setTriggerValue("chosen", id);
  const lines = data.rows.map((row) => (row.kind === "message" ? messageLine(row, choose) : remarkLine(row)));
  const scrolled = root.scrollTop;
  const first = !root.childElementCount;
  const focused = [...root.children].indexOf(parentElement.activeElement || document.activeElement);
  root.replaceChildren(ends(data), ...lines);
  if (focused > 0 && root.children[focused]) root.children[focused].focus({ preventScroll: true });
  const chosen = root.querySelector(".chosen");
  root.scrollTop = first && chosen ? chosen.offsetTop - root.offsetTop - root.clientHeight / 2 : scrolled;
  root.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = lines.filter((line) => line.tagName === "BUTTON");
    const active = parentElement.activeElement || document.activeElement;
    const next = buttons[buttons.indexOf(active) + step];
    if (next) next.focus();
    event.preventDefault();
  };
}
