// The message inspector: fields beside hex, each marking the other. All texts arrive as data and become text nodes.

const BYTES_PER_LINE = 8;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function fieldList(message, choose) {
  const list = element("div", "fields");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", `Fields of the ${message.role}`);
  message.fields.forEach(([depth, name, value, start, end, hidden], place) => {
    const line = element("button", hidden ? "field hidden" : "field");
    line.type = "button";
    line.tabIndex = place ? -1 : 0; // one stop of the Tab key for the whole list; arrows move inside
    line.setAttribute("role", "option");
    line.style.paddingInlineStart = `${0.4 + Math.min(depth, 12) * 0.9}rem`;
    line.append(element("span", "name", name), element("span", "value", value));
    line.title = `${name} ${value} (${end > start ? `bytes ${start} to ${end - 1}` : "no bytes of its own"})`;
    line.addEventListener("click", () => choose(place));
    line.addEventListener("focus", () => choose(place));
    list.append(line);
  });
  list.addEventListener("keydown", (event) => {
    const lines = [...list.children];
    const at = lines.indexOf(event.target);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (lines[next]) lines[next].focus();
  });
  return list;
}

function hexDump(message, chooseByte) {
  const dump = element("div", "hex");
  dump.tabIndex = 0;
  dump.setAttribute("role", "region");
  dump.setAttribute("aria-label", `Bytes of the ${message.role}`);
  const digits = Math.max(4, Math.max(message.total - 1, 0).toString(16).length);
  for (let start = 0; start < message.hex.length; start += BYTES_PER_LINE) {
    const line = element("div", "line");
    line.append(element("span", "offset", start.toString(16).padStart(digits, "0")));
    const pairs = element("span", "pairs");
    const letters = element("span", "letters");
    for (let at = start; at < Math.min(start + BYTES_PER_LINE, message.hex.length); at += 1) {
      for (const [box, text] of [[pairs, message.hex[at]], [letters, message.letters[at]]]) {
        const byte = element("span", "byte", text);
        byte.dataset.at = at;
        box.append(byte);
      }
    }
    for (let at = message.hex.length; at < start + BYTES_PER_LINE; at += 1) pairs.append(element("span", "byte", "\u00a0\u00a0"));
    line.append(pairs, letters);
    dump.append(line);
  }
  dump.addEventListener("click", (event) => {
    const at = event.target.dataset && event.target.dataset.at;
    if (at !== undefined) chooseByte(Number(at));
  });
  if (message.total > message.hex.length) {
    dump.append(element("div", "note", `${message.total - message.hex.length} more bytes are not shown`));
  }
  return dump;
}

function smallestField(fields, at) {
  let found = -1;
  fields.forEach(([, , , start, end], place) => {
    const inside = start <= at && at < end;
    if (inside && (found < 0 || end - start <= fields[found][4] - fields[found][3])) found = place;
  });
  return found;
}

// What is copied, from a page without TLS too, where browsers have no clipboard for scripts.
async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const box = element("textarea");
  box.value = text;
  box.style.position = "fixed";
  box.style.opacity = "0";
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (!done) throw new Error("the browser does not copy");
}

const SAID_MS = 1500;

// text: what the button copies, "" while there is nothing to copy.
function copyButton(label, text) {
  const button = element("button", "copy", label);
  button.type = "button";
  button.addEventListener("click", async () => {
    let said = "Copied";
    try {
      await copyText(text());
    } catch {
      said = "The browser did not copy";
    }
    button.textContent = said;
    setTimeout(() => { button.textContent = label; }, SAID_MS);
  });
  return button;
}

function copyBar(message, marked) {
  const bar = element("div", "copies");
  bar.setAttribute("aria-live", "polite");
  const value = copyButton("Copy value", () => message.fields[marked()][2] || message.fields[marked()][1]);
  const hex = copyButton("Copy its hex", () => {
    const [, , , start, end] = message.fields[marked()];
    return message.hex.slice(start, end).join(" ");
  });
  bar.append(value, hex, ...message.copies.map(([label, text]) => copyButton(label, () => text)));
  const update = () => {
    const place = marked();
    value.disabled = place < 0;
    const [start, end] = place < 0 ? [0, 0] : message.fields[place].slice(3, 5);
    hex.disabled = Math.min(end, message.hex.length) <= start;
  };
  update();
  return { bar, update };
}

function panel(message) {
  const box = element("section", "message");
  box.setAttribute("aria-label", message.title);
  box.append(element("h4", "", message.title));
  const facts = element("dl");
  for (const [label, value] of message.facts) facts.append(element("dt", "", label), element("dd", "", value));
  box.append(facts);
  const columns = element("div", "columns");
  let marked = [];
  let chosen = -1;
  const copies = copyBar(message, () => chosen);
  const mark = (place, scroll) => {
    chosen = place;
    copies.update();
    marked.forEach((one) => one.classList.remove("marked"));
    const [, , , start, end] = message.fields[place];
    const line = list.children[place];
    marked = [line, ...[...dump.querySelectorAll(".byte")].filter(({ dataset }) => start <= dataset.at && dataset.at < end)];
    marked.forEach((one) => one.classList.add("marked"));
    [...list.children].forEach((one) => {
      one.setAttribute("aria-selected", one === line);
      one.tabIndex = one === line ? 0 : -1;
    });
    if (scroll === "field") list.scrollTop = line.offsetTop - list.offsetTop - list.clientHeight / 2;
    else if (marked[1]) dump.scrollTop = marked[1].parentElement.parentElement.offsetTop - dump.offsetTop - dump.clientHeight / 3;
  };
  const list = fieldList(message, (place) => mark(place, "bytes"));
  const dump = hexDump(message, (at) => {
    const place = smallestField(message.fields, at);
    if (place >= 0) mark(place, "field");
  });
  columns.append(list, dump);
  box.append(copies.bar, columns);
  for (const note of message.notes) box.append(element("p", "note", note));
  return box;
}

export default function inspector({ parentElement, data }) {
  const root = parentElement.querySelector(".inspector");
  root.replaceChildren(...data.messages.map(panel));
}
