// What is shown follows from the address: #question=ID, #document=ID, #view=questions,
// #view=documents, or the run. Scroll positions come back with an address that was left.
const scrolls = new Map();
let shownAt = null, shownSubject = null; // the address of what is shown, and its subject
let shows = 0;

async function show() {
  const turn = ++shows;
  const main = document.getElementById("main");
  const slow = setTimeout(() => main.setAttribute("aria-busy", "true"), 150);
  let view;
  try {
    const run = await load("index");
    view = await shown(run, new URLSearchParams(location.hash.slice(1)));
  } catch (error) {
    view = { title: "error", parts: el("p", { class: "note" }, String(error.message ?? error)) };
    console.error(error);
  }
  clearTimeout(slow);
  if (turn === shows) place(main, view);
}

// A view: {subject, title, parts, ready}; of one subject the focus and the scrolls are kept.
function place(main, { subject = location.hash, title, parts, ready }) {
  const scrolled = Object.fromEntries([...document.querySelectorAll("[data-keep]")].map((pane) => [pane.dataset.keep, pane.scrollTop]));
  if (shownAt !== null) scrolls.set(shownAt, { window: window.scrollY, panes: scrolled });
  const isSame = subject === shownSubject, isFirst = shownSubject === null;
  const focused = document.activeElement?.id;
  const before = isSame ? scrolls.get(shownAt) : scrolls.get(location.hash);
  main.replaceChildren(...present([parts]));
  main.removeAttribute("aria-busy");
  document.body.dataset.view = subject.split("=")[0];
  document.title = facts(title, main.dataset.run, "gistmill");
  window.scrollTo(0, before?.window ?? 0);
  for (const pane of document.querySelectorAll("[data-keep]")) pane.scrollTop = before?.panes[pane.dataset.keep] ?? 0;
  if (isSame) document.getElementById(focused)?.focus({ preventScroll: true });
  else if (!isFirst) main.querySelector("h2")?.focus({ preventScroll: true });
  [shownAt, shownSubject] = [location.hash, subject];
  const { question, document: id, view = "" } = here();
  const at = question ? "questions" : id ? "documents" : view;
  for (const link of document.querySelectorAll("header nav a")) link.ariaCurrent = link.dataset.at === at ? "page" : null;
  ready?.();
}

function heading(...parts) {
  return el("h2", { tabindex: -1 }, parts);
}

function shown(run, parameters) {
  if (parameters.has("question")) return questionPage(run, parameters);
  if (parameters.has("document")) return documentPage(run, parameters);
  if (parameters.get("view") === "questions") return questionList(run, parameters);
  if (parameters.get("view") === "runs" && document.body.dataset.served) return runList(run);
  if (parameters.get("view") === "documents") return documentList(run, parameters);
  return overview(run, parameters);
}

function missing(text) {
  return { title: "not found", parts: el("p", { class: "note" }, text) };
}

window.addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  const main = document.getElementById("main");
  main.focus();
  main.scrollIntoView();
});
if (document.body.dataset.served) watchRun();
show();
