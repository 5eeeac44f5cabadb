// The run as a whole: what one may claim of its methods, what they read, cost and failed at.
async function overview(run, parameters) {
  const { report } = run;
  const measures = report.measures.filter((name) => report.rows.some((row) => row.means[name]?.mean != null));
  const measure = measures.includes(parameters.get("score")) ? parameters.get("score") : measures[0];
  const documents = run.documents.filter((row) => !row.problem && !row.skipped);
  const about = "Score against tokens read";
  const frontier = run.frontiers[measure] && el("figure", { class: "drawn" }, el("figcaption", null, about),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": about }, imported(run.frontiers[measure])));
  return { subject: "run", title: "Run", ready: () => parameters.has("part") && document.getElementById(parameters.get("part"))?.scrollIntoView(), parts: [
    heading(el("span", { class: "hidden" }, "Run "), facts(
      plural(documents.length, "document"),
      `${number(documents.reduce((sum, row) => sum + row.num_words, 0))} words`,
      plural(run.questions.length, "question"))),
    el("p", { class: "quiet" }, run.foot),
    run.remarks.map((note) => el("p", { class: "note" }, note)),
    report.left_out.length > 0 && el("div", { class: "note" }, folded(`left out ${plural(report.left_out.length, "damaged file")}`,
      () => el("ul", null, report.left_out.map(({ file, why }) => el("li", null, `${file}: ${why}`))))),
    causeNote(run),
    scores(run),
    measures.length > 0 && el("p", { class: "quiet" },
      "Means over all questions, a problem counts 0, with their 95% interval over documents. ",
      report.rows.some((row) => row.best.length) && `Bold: ${run.about_best}`),
    measures.length > 0 && [
      el("div", { class: "filters" },
        filter("score", measures.map((name) => [name, headingOf(run, name)]), measure,
          (event) => { location.hash = linkWith({ score: event.target.value }); })),
      el("div", { class: "pictures" }, await differences(run, measure, parameters), frontier),
    ],
    el("h3", { id: "problems" }, "Problems"),
    report.findings.length > 0 && el("ul", { class: "findings" }, report.findings.map((line) => el("li", null, line))),
    causeTable(run),
    el("h3", null, "Cost"),
    costs(run),
  ] };
}

function headingOf(run, measure) {
  return run.report.columns.find((column) => column.measure === measure)?.heading ?? measure;
}

function scores(run) {
  const { report } = run;
  const valueOf = (row, measure) => row.means[measure]?.mean ?? row.counts[measure] ?? null;
  const hasValues = ({ measure }) => report.rows.some((row) => valueOf(row, measure) !== null);
  const hasGroups = report.rows.some((row) => row.by !== null);
  const columns = [
    {
      heading: "method", value: (row) => run.method_names[row.method],
      shown: (row) => el("a", { href: link({ view: "questions", method: row.method }), title: row.method },
        methodDot(run, row.method), run.method_names[row.method]),
    },
    ...(hasGroups ? [{ heading: "by", value: (row) => row.by ?? "-" }] : []),
    { heading: "n", about: "questions", value: (row) => row.counts.n ?? null, isNumber: true },
    { heading: "answered", about: "answers without a problem", value: (row) => row.counts.answered ?? null, isNumber: true },
    ...report.columns.filter(hasValues).map((column) => ({
      heading: column.heading, about: column.about, group: run.groups[column.measure], isNumber: true,
      value: (row) => valueOf(row, column.measure),
      shown: (row) => meanCell(row, column, report.measures.includes(column.measure)),
    })),
  ];
  return el("div", { class: "scores" }, dataTable({ caption: "Scores of all methods", columns, rows: report.rows }));
}

function meanCell(row, column, isOfAnswers) {
  const mean = row.means[column.measure];
  if (!mean) return shortNumber(row.counts[column.measure]);
  if (mean.mean === null) return "-";
  const interval = column.has_interval && (mean.low === null ? "n/a" : `${number(mean.low)}–${number(mean.high)}`);
  const told = facts(`answered only ${shortNumber(mean.answered_mean)} (n=${mean.answered_n})`, mean.sd !== null && `sd over repeats ${mean.sd.toFixed(2)}`);
  return el("span", { title: told, class: row.best.includes(column.measure) ? "best" : null },
    shortNumber(mean.mean), mean.n !== row.counts.n && el("small", null, ` n=${mean.n}`),
    isOfAnswers && mean.answered_n < mean.n && el("small", null, ` ${mean.answered_n} answered`),
    interval && el("small", { class: "interval" }, interval));
}

function shortNumber(value) {
  return value === null || value === undefined ? "-" : value.toFixed(1);
}

function costs({ report, method_names: names }) {
  const words = (name) => name.replaceAll("_", " ");
  const counted = ["answered", "unscored", "calls", "tokens", "memory_calls", "memory_tokens", "judging_calls", "judging_tokens"];
  const memory = Object.keys(report.memories[0] ?? {});
  const stage = ["stage", "calls", "prompt_tokens", "cached_tokens", "cached_share", "reply_tokens"];
  const named = (row) => (row.by === null ? names[row.method] : `${names[row.method]}, ${row.by}`);
  return [
    folded("Methods", () => table("Cost of methods", ["method", ...counted.map(words)],
      report.rows.map((row) => [named(row), ...counted.map((name) => row.counts[name] ?? null)])), true),
    folded("Stages", () => table("Cost of stages", stage.map(words), report.stages.map((row) => stage.map((name) => row[name])))),
    report.memories.length > 0 && folded("Memories", () => table("Memories", memory.map(words), report.memories.map((row) => memory.map((name) => row[name])))),
  ];
}
