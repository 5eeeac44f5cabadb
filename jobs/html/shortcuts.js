// Keys: each presses what is on the page already. They can be turned off, as speech input needs it.
const KEYS = [
  ["n", "next question", () => document.querySelector("main a[rel=next]")?.click()],
  ["p", "previous question", () => document.querySelector("main a[rel=prev]")?.click()],
  ["j", "down: the next method, or row", () => step(1)],
  ["k", "up: the method, or row, before", () => step(-1)],
  ["/", "search the questions", () => search()],
];
let keysAreOn = true;
let wantsSearch = false; // once the next view is there

function pressed(event) {
  if (!keysAreOn || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const found = KEYS.find(([key]) => key === event.key);
  if (!found) return;
  event.preventDefault();
  found[2]();
}

// To the next of what can be stepped through; a method is chosen by that.
function step(by) {
  const all = [...document.querySelectorAll("main [data-step]")];
  const at = all.indexOf(document.activeElement.closest("[data-step]") ?? all.find((one) => one.dataset.step === "current"));
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
  next?.focus();
  if (next?.dataset.step && all.indexOf(next) !== at) next.click();
}

// To the field of a list; from elsewhere to that of the list of questions.
function search() {
  wantsSearch = !focusSearch();
  if (wantsSearch) location.hash = listLink(filtersOf(new URLSearchParams(location.hash.slice(1))));
}

function focusSearch() {
  const field = document.querySelector("main input[type=search]");
  field?.focus();
  return field !== null;
}

function keysPart() {
  const toggle = el("input", { type: "checkbox", checked: true, change: (event) => { keysAreOn = event.target.checked; } });
  return el("details", { class: "keys" }, el("summary", null, "Keys"),
    el("div", null,
      el("dl", null, KEYS.map(([key, what]) => [el("dt", null, el("kbd", null, key)), el("dd", null, what)])),
      el("label", null, toggle, " on")));
}
