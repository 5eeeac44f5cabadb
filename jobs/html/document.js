// The page of a document: its memory page by page, with contents and the gold evidence of its questions.
async function documentPage(run, parameters) {
  const id = parameters.get("document");
  const row = run.documents.find((one) => one.document_id === id);
  if (!row) return missing(`${id}: no such document on this page`);
  const { document } = await load(run.document_parts ? `part-${run.document_parts[row.number]}` : `document-${row.number}`);
  const memories = (table) => document.sections.filter((section) => !table || section.table === table).map((section) => section.memory);
  const names = [...new Set([...memories("gists"), ...memories("pages"), ...memories()])]; // methods read gists
  const chosen = names.includes(parameters.get("memory")) ? parameters.get("memory") : names[0];
  const asked = run.questions.filter((one) => one.document === row.number);
  const of = asked.find((one) => one.question_id === parameters.get("evidence"));
  const question = of && (await loadQuestion(run, of)).questions[of.question_id];
  const evidence = question?.evidence ?? [];
  const pages = pagesOf(document, chosen);
  const first = pages.find((page) => holdsAny(page, evidence));
  const at = parameters.get("at") === "first" ? first?.page_index ?? null : parameters.get("at");
  const seen = { slot: "d", read: new Set(), evidence, words: new Set(), isBeside: true };
  return {
    subject: `document=${id}`,
    title: row.title || id,
    ready: () => showPage(at !== null && `d${at}`),
    parts: [
      el("p", { class: "steps" }, el("a", { href: link({ view: "documents" }) }, "all documents"),
        question && el("a", { href: link({ question: parameters.get("evidence") }) }, "to the question")),
      heading(el("bdi", null, row.title || id)),
      el("p", { class: "quiet" }, facts(id, `${number(row.num_words)} words`, row.problem, document.detail)),
      asked.length > 0 && folded(plural(asked.length, "question"), () => el("ul", { class: "asked-of-it" }, asked.map((one) => el("li", null,
        el("a", { href: link({ question: one.question_id }), dir: "auto" }, el("b", null, one.question_id), ` ${one.question}`), " ",
        el("a", { href: link({ document: id, memory: chosen, evidence: one.question_id, at: "first" }) }, "its evidence"))))),
      question && el("p", { class: "question text" }, question.question),
      names.length === 0 ? el("p", null, "No memory was made of it.") : el("div", { class: "document-view" },
        contents(names, chosen, pages, evidence),
        scrolling("div", "document", "Pages", { class: "document-pages" }, memoryPart(document, chosen, seen))),
    ],
  };
}

// Pages by their first words.
function contents(names, chosen, pages, evidence) {
  const change = (event) => { location.hash = linkWith({ memory: event.target.value, at: null }); };
  const gold = pages.filter((page) => holdsAny(page, evidence));
  const items = pages.map((page) => {
    const isGold = gold.includes(page);
    const line = (page.text ?? "").trim().split("\n")[0];
    return el("li", null, el("a", { href: linkWith({ at: page.page_index }), class: isGold ? "gold-page" : null },
      el("b", null, String(page.page_index)), " ", el("bdi", null, line.length > 70 ? `${line.slice(0, 70)} …` : line),
      isGold && el("span", { class: "badge evidence" }, "evidence")));
  });
  return el("nav", { class: "contents", "aria-label": "Contents" },
    names.length > 1 && el("div", { class: "filters" }, filter("memory", names, chosen, change)),
    gold.length > 0 && el("p", null, "Evidence on page ", gold.map((page) =>
      [el("a", { class: "to-page", href: linkWith({ at: page.page_index }) }, String(page.page_index)), " "])),
    scrolling("div", "contents", "Pages of the document", { class: "pages-list" }, el("ol", null, items)));
}
