// The run as a whole: what one may claim of its methods, what they read, cost and failed at.
async function overview(run, parameters) {
  const { report } = run;
  const measures = scoredBy(report);
  const measure = measures.includes(parameters.get("score")) ? parameters.get("score") : measures[0];
  const documents = run.documents.filter((row) => !row.problem && !row.skipped);
  return { subject: "run", title: "Run", ready: () => toPart(parameters.get("part")), parts: [
    heading(el("span", { class: "hidden" }, "Run "), facts(plural(documents.length, "document"), `${number(documents.reduce((sum, row) => sum + row.num_words, 0))} words`, plural(run.questions.length, "question"))),
    el("p", { class: "quiet" }, run.foot),
    run.remarks.map((note) => el("p", { class: "note" }, note)),
    leftOut(report.left_out),
    causeNote(run),
    scores(run),
    measures.length > 0 && el("p", { class: "quiet" }, "Means over all questions, a problem counts 0, with their 95% interval over documents. ", report.rows.some((row) => row.best.length) && `Bold: ${run.about_best}`),
    measures.length > 0 && [
      el("div", { class: "filters" }, filter("score", measures.map((name) => [name, headingOf(run, name)]), measure, (event) => { location.hash = linkWith({ score: event.target.value }); })),
      el("div", { class: "pictures" }, await differences(run, measure, parameters), claims(run, measure)),
    ],
    el("h3", { id: "problems" }, "Problems"),
    problems(run),
    el("h3", null, "Cost"),
    costs(run),
  ] };
}

// The measures of answers that some method has a value of.
function scoredBy(report) {
  return report.measures.filter((name) => report.rows.some((row) => row.means[name]?.mean != null));
}

function toPart(name) {
  if (name) document.getElementById(name)?.scrollIntoView();
}

function headingOf(run, measure) {
  return run.report.columns.find((column) => column.measure === measure)?.heading ?? measure;
}

function leftOut(files) {
  if (!files.length) return null;
  const list = () => el("ul", null, files.map(({ file, why }) => el("li", null, `${file}: ${why}`)));
  return el("div", { class: "note" }, folded(`left out ${plural(files.length, "damaged file")}`, list));
}

function scores(run) {
  const { report } = run;
  const hasGroups = report.rows.some((row) => row.by !== null);
  const columns = [
    { heading: "method", value: (row) => run.method_names[row.method], shown: (row) => methodAnchor(run, row) },
    ...(hasGroups ? [{ heading: "by", value: (row) => row.by ?? "-" }] : []),
    { heading: "n", about: "questions", value: (row) => row.counts.n ?? null, isNumber: true },
    { heading: "answered", about: "answers without a problem", value: (row) => row.counts.answered ?? null, isNumber: true },
    ...scoreColumns(report).map((column) => ({
      heading: column.heading, about: column.about, group: run.groups[column.measure], isNumber: true,
      value: (row) => row.means[column.measure]?.mean ?? row.counts[column.measure] ?? null,
      shown: (row) => meanCell(row, column, report.measures.includes(column.measure)),
    })),
  ];
  return el("div", { class: "scores" }, dataTable({ caption: "Scores of all methods", columns, rows: report.rows }));
}

function methodAnchor(run, row) {
  return el("a", { href: link({ view: "questions", method: row.method }), title: row.method, "data-step": "" },
    el("span", { class: `dot ${toneOf(run, row.method)}`, "aria-hidden": "true" }), run.method_names[row.method]);
}

// What no method has a value of is left out.
function scoreColumns(report) {
  return report.columns.filter(({ measure }) => report.rows.some((row) => (row.means[measure]?.mean ?? row.counts[measure] ?? null) !== null));
}

function meanCell(row, column, isOfAnswers) {
  const mean = row.means[column.measure];
  if (!mean) return shortNumber(row.counts[column.measure]);
  if (mean.mean === null) return "-";
  const interval = column.has_interval && (mean.low === null ? "n/a" : `${number(mean.low)}–${number(mean.high)}`);
  const told = facts(
    `answered only ${shortNumber(mean.answered_mean)} (n=${mean.answered_n})`,
    mean.sd !== null && `sd over repeats ${mean.sd.toFixed(2)}`,
  );
  return el("span", { title: told, class: row.best.includes(column.measure) ? "best" : null },
    shortNumber(mean.mean), mean.n !== row.counts.n && el("small", null, ` n=${mean.n}`),
    isOfAnswers && mean.answered_n < mean.n && el("small", null, ` ${mean.answered_n} answered`),
    interval && el("small", { class: "interval" }, interval));
}

function shortNumber(value) {
  return value === null || value === undefined ? "-" : value.toFixed(1);
}

// Score against what was read: the picture of the report.
function claims(run, measure) {
  return run.frontiers[measure] ? drawn("Score against tokens read", run.frontiers[measure]) : null;
}

function costs({ report, method_names: names }) {
  const words = (name) => name.replaceAll("_", " ");
  const counted = ["answered", "unscored", "calls", "tokens", "memory_calls", "memory_tokens", "judging_calls", "judging_tokens"];
  const memory = Object.keys(report.memories[0] ?? {});
  const stage = ["stage", "calls", "prompt_tokens", "cached_tokens", "cached_share", "reply_tokens"];
  const named = (row) => (row.by === null ? names[row.method] : `${names[row.method]}, ${row.by}`);
  return [
    folded("Methods", () => table("Cost of methods", ["method", ...counted.map(words)], report.rows.map((row) => [named(row), ...counted.map((name) => row.counts[name] ?? null)])), true),
    folded("Stages", () => table("Cost of stages", stage.map(words), report.stages.map((row) => stage.map((name) => row[name])))),
    report.memories.length > 0 && folded("Memories", () => table("Memories", memory.map(words), report.memories.map((row) => memory.map((name) => row[name])))),
  ];
}
