// What is shown follows from the address after the #, so that every view can be linked and gone back
// to: #question=ID, #document=ID, #view=questions, #view=documents, or the run.
async function start(library) {
  DataTable = library;
  DataTable.ext.errMode = "throw";
  window.addEventListener("hashchange", show);
  await show();
}

let shows = 0;

async function show() {
  const turn = ++shows;
  const main = document.getElementById("main");
  try {
    const made = await shown(await load("index"), new URLSearchParams(location.hash.slice(1)));
    if (turn === shows) main.replaceChildren(...present([made]));
  } catch (error) {
    if (turn === shows) main.replaceChildren(el("p", { class: "note" }, String(error.message ?? error)));
    console.error(error);
  }
  if (turn === shows) window.scrollTo(0, 0);
}

function shown(run, parameters) {
  if (parameters.has("question")) return questionPage(run, parameters.get("question"), parameters.get("method"), parameters.get("repeat"));
  if (parameters.has("document")) return documentPage(run, parameters.get("document"), parameters.get("memory"));
  if (parameters.get("view") === "questions") return questionList(run, parameters);
  if (parameters.get("view") === "documents") return documentList(run);
  return overview(run);
}

async function documentPage(run, id, memory) {
  const row = run.documents.find((one) => one.document_id === id);
  if (!row) return el("p", { class: "note" }, `${id}: no such document on this page`);
  const { document } = await load(run.document_parts ? `part-${run.document_parts[row.number]}` : `document-${row.number}`);
  const names = [...new Set(document.sections.map((section) => section.memory))];
  const chosen = names.includes(memory) ? memory : names[0];
  const asked = run.questions.filter((one) => one.document === row.number);
  const change = (event) => { location.hash = link({ document: id, memory: event.target.value }); };
  const seen = { read: new Set(), evidence: [], words: new Set(), isBeside: true };
  return [
    el("p", { class: "steps" }, el("a", { href: link({ view: "documents" }) }, "all documents")),
    el("h2", null, row.title || id),
    el("p", { class: "quiet" }, facts(id, `${number(row.num_words)} words`, row.problem, document.detail)),
    asked.length > 0 && folded(plural(asked.length, "question"), () => el("ul", null, asked.map((one) => el("li", null, questionLink(one, null))))),
    names.length === 0 ? el("p", null, "No memory was made of it.") : el("div", { class: "filters" }, filter("memory", names, chosen, change)),
    names.length > 0 && memoryPart(document, chosen, seen),
  ];
}
