// The page of one question, on one screen: what was asked and how each method did, the reading map,
// two answers side by side, and in tabs what led to them.
async function questionPage(run, parameters) {
  const id = parameters.get("question");
  const row = run.questions.find((one) => one.question_id === id);
  if (!row) return missing(`${id}: no such question on this page`);
  const { document, questions } = await loadQuestion(run, row);
  const question = questions[id];
  const measure = shownMeasure(run, question, parameters);
  const attempts = attemptsAt(question, run);
  const chosen = pinned(run, attempts, question, measure, parameters);
  const listed = await listedQuestions(run, filtersOf(parameters));
  return {
    subject: `question=${id}`,
    title: `${id}: ${row.question}`,
    ready: () => showPage(parameters.get("at")),
    parts: el("div", { class: "question-view" },
      el("section", { class: "asked" }, steps(run, row, listed, parameters), asked(id, question, document)),
      attempts.length ? readingMap(run, document, question, attempts, chosen, measure) : el("p", null, "No method has answered it."),
      chosen.a && panes(run, document, question, chosen, measure, parameters)),
  };
}

function loadQuestion(run, row) {
  return load(run.question_parts ? `part-${run.question_parts[row.number]}` : `question-${row.number}`);
}

// The score that stands with each method: that of the list, or the first that the question has.
function shownMeasure(run, question, parameters) {
  const scores = question.sections.filter((section) => section.table === "scores").flatMap((section) => section.rows);
  const known = new Set(scores.filter((row) => row.value !== null).map((row) => row.metric));
  const wanted = parameters.get("measure");
  return known.has(wanted) ? wanted : run.report.measures.find((name) => known.has(name)) ?? null;
}

function steps(run, row, listed, parameters) {
  const filters = filtersOf(parameters);
  const place = listed.findIndex((one) => one.question_id === row.question_id);
  const same = { ...here(), at: null };
  const to = (other, rel, shown) => other
    ? el("a", { rel, id: `to-${rel}`, href: link({ ...same, question: other.question_id }) }, shown)
    : el("span", { class: "quiet" }, shown);
  const isPart = FILTERS.slice(1).some((name) => filters[name] && name !== "measure" && name !== "sort");
  return el("nav", { class: "steps", "aria-label": "Questions" },
    to(listed[place - 1], "prev", "← previous"),
    el("a", { href: listLink(filters) }, place < 0
      ? "all questions"
      : `${number(place + 1)} of ${number(listed.length)}${isPart ? " that the filters leave" : ""}`),
    to(listed[place + 1] ?? (place < 0 ? listed[0] : null), "next", "next →"));
}

function asked(id, question, document) {
  return [
    el("div", { class: "about" },
      heading(el("bdi", null, id)),
      el("span", { class: "quiet" }, "document ",
        el("a", { href: link({ document: document.document_id }) }, el("bdi", null, document.title || document.document_id)),
        facts("", question.question_type && ` type ${question.question_type}`, question.asked_at && `asked at ${question.asked_at}`))),
    scrolling("p", "question", "Question", { class: "question text" }, question.question),
    question.options.length > 0 && el("ol", { class: "options", type: "A" }, question.options.map((option, index) => {
      const isRight = index === question.answer_index;
      return el("li", { class: isRight ? "right" : null }, el("span", { class: "text" }, option), isRight && el("span", { class: "badge good" }, "✓ right"));
    })),
    question.options.length === 0 && question.references.length > 0 && scrolling("div", "references", "References", { class: "references" },
      question.references.map((text) => el("p", null, el("span", { class: "badge" }, "reference"), " ", el("span", { class: "text" }, text)))),
    question.problem && el("p", { class: "note" }, facts(question.problem, question.detail)),
  ];
}

// Scrolls a pane to the page that the address names, as "a3" for page 3 on the left.
function showPage(at) {
  const page = at && document.getElementById(`${at[0]}-page-${at.slice(1)}`);
  if (!page) return;
  const pane = page.closest("[data-keep]");
  const place = page.querySelector("mark.evidence") ?? page;
  if (pane.scrollHeight > pane.clientHeight) pane.scrollTop += place.getBoundingClientRect().top - pane.getBoundingClientRect().top - 40;
  else place.scrollIntoView({ block: place === page ? "start" : "center" });
  page.classList.add("target");
}
