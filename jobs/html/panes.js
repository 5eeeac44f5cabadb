// Two attempts side by side: their answers, and in tabs what led to them. The tab is in the address.
const SHOWN = ["answers", "ratings", "scores", "queries", "lookups", "visits"];
const TABS = [
  ["evidence", "Evidence", evidencePart],
  ["memory", "Memory", memoryOf],
  ["walk", "Walk", walkOf],
  ["calls", "Calls", ({ one }) => callList(one.calls)],
  ["verdicts", "Verdicts", ({ one }) => verdictsPart(one)],
  ["rows", "Rows", ({ one }) => one.sections.filter((section) => !SHOWN.includes(section.table)).map(linesPart)],
];

function panes(run, document, question, chosen, measure, parameters) {
  const shown = ["a", "b"].filter((slot) => chosen[slot]).map((slot) => ({ slot, one: chosen[slot], run, document, question, measure, parameters }));
  const tabs = TABS.map(([id, name, make]) => ({ id, name, parts: shown.map((at) => present([make(at)])) }))
    .filter(({ parts }) => parts.some((part) => part.length));
  const tab = tabs.find(({ id }) => id === parameters.get("tab")) ?? tabs[0];
  return el("section", { class: `panes of-${shown.length}` },
    el("div", { class: "pair" }, shown.map(answerPane)),
    tabs.length > 0 && [
      el("div", { class: "tabs", role: "tablist", "aria-label": "What led to the answers" },
        tabs.map(({ id, name }) => el("button", {
          type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "panel", "aria-selected": String(id === tab.id),
          click: () => { location.hash = linkWith({ tab: id, at: null }); },
        }, name))),
      el("div", { class: "pair panel", id: "panel", role: "tabpanel", "aria-labelledby": `tab-${tab.id}` },
        shown.map(({ slot, one }, index) => scrolling("div", `${slot}-${tab.id}`, `${tab.name} of ${one.name}`, { class: "pane" },
          tab.parts[index].length ? tab.parts[index] : el("p", { class: "quiet" }, "Nothing of this.")))),
    ]);
}

function answerPane({ slot, one, question, run, measure }) {
  const { answer } = one;
  const result = resultOf(one, question, measure);
  const text = answer?.skipped ? "Skipped: the method does not apply to this question." : answer?.answer ?? "No answer.";
  return el("article", { class: `answer ${toneOf(run, one.method)}` },
    el("h3", { title: one.method }, el("span", { class: "slot-mark" }, slot.toUpperCase()), " ", one.name, " ", resultBadge(result),
      one.problems.filter((problem) => problem !== result.word).map((problem) =>
        [" ", el("span", { class: "badge bad" }, `! ${problem}`)])),
    answer && el("p", { class: "quiet" }, aboutAnswer(answer, one, run)),
    scrolling("p", `${slot}-answer`, `Answer of ${one.name}`, { class: "text" }, text));
}

function aboutAnswer(answer, one, run) {
  const words = answer.num_context_words;
  const scores = one.rows("scores").filter((row) => row.value !== null && !row.metric.startsWith("evidence_"));
  return facts(
    ...scores.slice(0, 3).map((row) => `${headingOf(run, row.metric)} ${row.value.toFixed(1)}`),
    words !== null && `${number(words)} of ${number(answer.num_document_words)} words read`,
    plural(one.calls.filter((call) => !run.judging.includes(call.stage)).length, "call"), // raters' are nobody's
    answer.num_lookups > 0 && plural(answer.num_lookups, "page") + " looked up", answer.reader, answer.detail);
}

function evidencePart({ one, question }) {
  return question.evidence.map((gold, index) => {
    const share = Math.round(one.lane?.passages[index] ?? 0);
    const [mark, kind] = share === 100 ? ["✓", "good"] : share ? ["~", "some"] : ["✗", "bad"];
    return el("section", { class: "passage" },
      el("p", { class: "quiet" }, el("span", { class: `badge ${kind}` }, `${mark} ${share}% read`),
        ` characters ${number(gold.start_char)}–${number(gold.end_char)}`),
      el("p", { class: "text" }, question.evidence_texts[index]));
  });
}

function memoryOf({ slot, one, question, document }) {
  const pages = pagesOf(document, one.memory);
  const memory = document.sections.find((section) => section.table === "pages" && section.rows[0] === pages[0])?.memory;
  if (!pages.length) return null;
  const { answer } = one;
  const spans = answer?.context_spans ?? [];
  const isOwn = memory === one.memory;
  const read = isOwn ? answer?.page_indexes ?? [] : pages.filter((page) => holdsAny(page, spans)).map((page) => page.page_index);
  const words = rareWords(question.options[answer?.answer_index] ?? answer?.answer, pages);
  const seen = { slot, read: new Set(read), evidence: question.evidence, words, isBeside: false };
  return [
    el("p", { class: "quiet" }, isOwn ? `Memory ${memory}. ` : `It has no memory; the pages are those of ${memory}. `,
      "Pages that were read are open, of others the gist is shown. ",
      question.evidence.length > 0 && [el("mark", { class: "evidence" }, "gold evidence"), " "],
      el("mark", { class: "word" }, "rare words of the answer")),
    memoryPart(document, memory, seen),
  ];
}

function walkOf({ slot, one, document, question, run }) {
  const visits = one.sections.filter((section) => section.table === "visits");
  const trees = document.sections.filter((section) => section.memory === one.memory && section.table === "nodes");
  const tree = trees.find((section) => visits.some((visit) => visit.upstream.includes(section.step_id))) ?? trees[0];
  return [
    visits.length > 0 && el("div", { class: toneOf(run, one.method) },
      walkPart(one.rows("visits"), tree?.rows ?? [], pagesOf(document, one.memory), question.evidence)),
    queriesPart(one.rows("queries"), one.rows("lookups"), slot),
    lookupsPart(one.rows("lookups"), slot),
  ];
}

function verdictsPart(one) {
  const shown = one.rows("ratings").filter((row) => !row.skipped);
  const scores = one.rows("scores").filter((row) => !row.skipped);
  return [
    shown.length > 0 && table(`Verdicts on ${one.name}`, ["rater", "rubric", "reference", "verdict", "problem"],
      shown.map((row) => [row.rater, row.rubric, row.reference_index, row.label, row.problem])),
    scores.length > 0 && table(`Scores of ${one.name}`, ["score", "value", "problem"], scores.map((row) => [row.metric, row.value, row.problem])),
  ];
}
