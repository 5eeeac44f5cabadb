// Elements are made here and nowhere else. Texts are set as text, so nothing in the data of a run is
// ever read as HTML.
const TEXTS = /\b(text|prompt|reply|thinking)\b/; // classes of what a run has written, in any script

function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  if (TEXTS.test(attributes?.class ?? "")) element.setAttribute("dir", "auto");
  element.append(...present(children));
  return element;
}

function present(parts) {
  return parts.flat(9).filter((part) => part !== null && part !== undefined && part !== false);
}

// An element in which more than fits is scrolled, also by keys; `keep` names its place across views.
function scrolling(tag, keep, name, attributes, ...children) {
  return el(tag, { ...attributes, "data-keep": keep, tabindex: 0, role: "group", "aria-label": name }, children);
}

function folded(title, make, isOpen = false) {
  const details = el("details", null, el("summary", null, title));
  details.addEventListener("toggle", async () => details.append(...present([await make()])), { once: true });
  details.open = isOpen;
  return details;
}

function facts(...parts) {
  return parts.filter((part) => part !== null && part !== undefined && part !== false && part !== "").join(" · ");
}

function number(value, digits = 1) {
  if (value === null || value === undefined) return "-";
  return Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(digits);
}

function plural(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}
