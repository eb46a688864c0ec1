// Values of a message as buttons; a press is told. All texts arrive as data and become text nodes.

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export default function values({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".values");
  const buttons = data.values.map(([key, label, value]) => {
    const button = element("button", "value");
    button.type = "button";
    button.title = `${label} ${value}`;
    button.append(element("span", "label", label), element("span", "text", value));
    button.addEventListener("click", () => setTriggerValue("chosen", key));
    return button;
  });
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.title);
  root.replaceChildren(element("span", "title", data.title), ...buttons);
}
