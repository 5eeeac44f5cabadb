// The page of one question: its answers by method, and everything that led to one of them.
async function questionPage(run, id, method, repeat) {
  const row = run.questions.find((one) => one.question_id === id);
  if (!row) return el("p", { class: "note" }, `${id}: no such question on this page`);
  const { document, questions } = await load(run.question_parts ? `part-${run.question_parts[row.number]}` : `question-${row.number}`);
  const question = questions[id];
  const attempts = attemptsAt(question);
  const chosen = attempts.find((one) => one.method === method && String(one.repeat) === repeat) ?? attempts.find((one) => one.method === method) ?? attempts[0];
  return [
    el("p", { class: "steps" }, neighbour(run, row.number - 1, method, "← before"), el("a", { href: link({ view: "questions", method }) }, "all questions"), neighbour(run, row.number + 1, method, "next →")),
    el("h2", null, id),
    asked(question, document),
    attempts.length ? attemptTable(attempts, question, chosen, run.judging) : el("p", null, "No method has answered it."),
    chosen && el("article", null, attemptPart(chosen, question, document, run.stop_words)),
  ];
}

function neighbour(run, number, method, shown) {
  const row = run.questions[number];
  return row ? el("a", { href: link({ question: row.question_id, method }) }, shown) : el("span", null, "");
}

function asked(question, document) {
  const options = question.options.map((option, index) => el("li", { class: index === question.answer_index ? "right" : null }, option, index === question.answer_index && el("span", { class: "badge good" }, "right")));
  return [
    el("p", { class: "question text" }, question.question),
    options.length > 0 && el("ol", { class: "options", type: "A" }, options),
    question.options.length === 0 && question.references.map((text) => el("p", { class: "text" }, el("span", { class: "badge" }, "reference"), " ", text)),
    question.evidence_texts.map((text) => el("p", { class: "text" }, el("span", { class: "badge evidence" }, "gold evidence"), " ", text)),
    el("p", { class: "quiet" }, "document ", el("a", { href: link({ document: document.document_id }) }, document.document_id), facts("", question.question_type && ` type ${question.question_type}`, question.asked_at && `asked at ${question.asked_at}`)),
    question.problem && el("p", { class: "note" }, facts(question.problem, question.detail)),
  ];
}

// What each method and repeat did: its sections and calls.
function attemptsAt(question) {
  const found = new Map();
  const at = (row) => {
    const key = JSON.stringify([row.method, row.repeat]);
    if (!found.has(key)) found.set(key, { method: row.method, repeat: row.repeat, sections: [], calls: [] });
    return found.get(key);
  };
  for (const section of question.sections) at(section).sections.push(section);
  for (const call of question.calls) at(call).calls.push(call);
  for (const one of found.values()) {
    one.rows = (table) => one.sections.filter((section) => section.table === table).flatMap((section) => section.rows);
    one.answer = one.rows("answers")[0] ?? null;
  }
  return [...found.values()].sort((a, b) => (a.method < b.method ? -1 : a.method > b.method ? 1 : a.repeat - b.repeat));
}

// `judging`: stages whose calls are the raters', which no method is counted for.
function attemptTable(attempts, question, chosen, judging) {
  const hasRepeats = attempts.some((one) => one.repeat > 0);
  const rows = attempts.map((one) => {
    const { answer } = one;
    const text = answer?.answer ?? "-";
    return [
      el("a", { href: link({ question: question.question_id, method: one.method, repeat: hasRepeats ? one.repeat : null }), class: one === chosen ? "chosen" : null }, methodName(hasRepeats ? `${one.method}, repeat ${one.repeat}` : one.method)),
      [verdictBadge(question, answer), problemBadge(answer?.problem), el("span", { class: "text wide" }, text.length > 160 ? `${text.slice(0, 160)} …` : text)],
      one.rows("ratings").filter((row) => !row.skipped).map((row) => `${row.rubric} ${row.label ?? "-"}`).join(", "),
      el("span", { class: "wide scores" }, one.rows("scores").filter((row) => row.value !== null).map((row) => `${row.metric} ${row.value.toFixed(1)}`).join(", ")),
      answer?.compression_rate ?? null,
      one.calls.filter((call) => !judging.includes(call.stage)).length,
    ];
  });
  return table(["method", "answer", "verdicts", "scores", "compression", "calls"], rows);
}

function verdictBadge(question, answer) {
  if (question.answer_index === null || answer === null || answer.skipped) return null;
  const isRight = answer.problem === null && answer.answer_index === question.answer_index;
  return el("span", { class: isRight ? "badge good" : "badge bad" }, isRight ? "right" : "wrong");
}

const SHOWN = ["answers", "ratings", "scores", "queries", "lookups", "visits"];

function attemptPart(one, question, document, stopWords) {
  const { answer } = one;
  const memory = one.sections.find((section) => section.table === "answers")?.memory;
  const visits = one.sections.filter((section) => section.table === "visits");
  const ofMemory = document.sections.filter((section) => section.memory === memory);
  const trees = ofMemory.filter((section) => section.table === "nodes");
  const tree = trees.find((section) => visits.some((visit) => visit.upstream.includes(section.step_id))) ?? trees[0];
  const pages = ofMemory.filter((section) => section.table === "pages").flatMap((section) => section.rows);
  const seen = { read: new Set(answer?.page_indexes ?? []), evidence: question.evidence, words: wordsOf(question.options[answer?.answer_index] ?? answer?.answer, stopWords), isBeside: false };
  return [
    el("h2", null, methodName(one.method)),
    answer && answerPart(answer, question),
    queriesPart(one.rows("queries"), one.rows("lookups")),
    lookupsPart(one.rows("lookups")),
    walkPart(one.rows("visits"), tree?.rows ?? [], pages),
    verdictsPart(one.rows("ratings")),
    one.sections.filter((section) => !SHOWN.includes(section.table)).map(linesPart),
    callList(one.calls, "Calls"),
    pages.length > 0 && [el("h3", null, `Memory: ${memory}`), legend(), memoryPart(document, memory, seen)],
  ];
}

function answerPart(answer, question) {
  const words = answer.num_context_words;
  return el("div", { class: "answer" },
    el("p", { class: "text" }, answer.skipped ? "Skipped: the method does not apply to this question." : answer.answer ?? "-"),
    el("p", { class: "quiet" }, verdictBadge(question, answer), problemBadge(answer.problem), " ", facts(
      words !== null && `${number(words)} of ${number(answer.num_document_words)} words read`,
      answer.compression_rate !== null && `compression ${answer.compression_rate.toFixed(1)}%`,
      answer.num_lookups > 0 && plural(answer.num_lookups, "page") + " looked up", answer.reader, answer.detail)));
}

function verdictsPart(ratings) {
  const shown = ratings.filter((row) => !row.skipped);
  if (!shown.length) return null;
  const headings = ["rater", "rubric", "reference", "verdict", "problem"];
  return [el("h3", null, "Verdicts"), table(headings, shown.map((row) => [row.rater, row.rubric, row.reference_index, row.label, row.problem]))];
}

function legend() {
  return el("p", { class: "quiet" }, "Pages that were read are open, of others the gist is shown. ", el("mark", { class: "evidence" }, "gold evidence"), " ", el("mark", { class: "word" }, "words of the answer"));
}
