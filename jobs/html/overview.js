// The run as a whole: scores, pictures, cost and problems.
async function overview(run) {
  const { report } = run;
  return [
    run.remarks.map((note) => el("p", { class: "note" }, note)),
    leftOut(report.left_out),
    el("p", null, facts(plural(run.documents.length, "document"), `${number(run.documents.reduce((sum, row) => sum + (row.problem ? 0 : row.num_words), 0))} words`, plural(run.questions.length, "question"))),
    el("h2", null, "Scores"),
    el("p", { class: "quiet" }, "Means over all questions, a problem counts 0, with their 95% interval over documents. Click a heading to sort."),
    scores(run),
    report.rows.some((row) => row.best.length) && el("p", { class: "quiet" }, `Bold: ${run.about_best}`),
    el("h2", null, "Pictures"),
    await pictures(run),
    el("h2", null, "Cost"),
    costs(run),
    el("h2", null, "Problems"),
    problems(run),
    el("p", { class: "quiet foot" }, run.foot),
  ];
}

function leftOut(files) {
  if (!files.length) return null;
  const list = () => el("ul", null, files.map(({ file, why }) => el("li", null, `${file}: ${why}`)));
  return el("div", { class: "note" }, folded(`left out ${plural(files.length, "damaged file")}`, list));
}

function scores({ report, method_names: names }) {
  const hasGroups = report.rows.some((row) => row.by !== null);
  const columns = scoreColumns(report);
  const headings = ["method", ...(hasGroups ? ["by"] : []), "n", ...columns.map((column) => column.heading)];
  const rows = report.rows.map((row) => [
    el("a", { href: link({ view: "questions", method: row.method }), title: row.method }, methodName(names[row.method])),
    ...(hasGroups ? [row.by ?? "-"] : []),
    row.counts.n ?? null,
    ...columns.map((column) => meanCell(row, column, report.measures.includes(column.measure))),
  ]);
  return table(headings, rows);
}

// What no method has a value of is left out.
function scoreColumns(report) {
  return report.columns.filter(({ measure }) => report.rows.some((row) => (row.means[measure]?.mean ?? row.counts[measure] ?? null) !== null));
}

function meanCell(row, column, isOfAnswers) {
  const mean = row.means[column.measure];
  if (!mean) return { shown: shortNumber(row.counts[column.measure]), order: row.counts[column.measure] ?? null };
  if (mean.mean === null) return { shown: "-", order: null };
  const interval = column.has_interval && (mean.low === null ? "n/a" : `${number(mean.low)}–${number(mean.high)}`);
  const told = facts(
    `answered only ${shortNumber(mean.answered_mean)} (n=${mean.answered_n})`,
    mean.sd !== null && `sd over repeats ${mean.sd.toFixed(2)}`,
  );
  const shown = el("span", { title: told, class: row.best.includes(column.measure) ? "best" : null },
    shortNumber(mean.mean), mean.n !== row.counts.n && el("small", null, ` n=${mean.n}`),
    isOfAnswers && mean.answered_n < mean.n && el("small", null, ` ${mean.answered_n} answered`),
    interval && el("small", { class: "interval" }, interval));
  return { shown, order: mean.mean };
}

function shortNumber(value) {
  return value === null || value === undefined ? "-" : value.toFixed(1);
}

async function pictures(run) {
  const { report, method_names: names } = run;
  const sizes = run.sizes.map((of) => histogram(of.memory ? `${of.measure} (${of.memory})` : of.measure, of.counts, of.edges, of.measure, of.rows_of));
  const around = el("div", { class: "pictures" });
  const known = report.columns.filter((column) => report.measures.includes(column.measure) && report.rows.some((row) => row.means[column.measure]?.mean != null));
  const chosen = el("select", { change: () => redraw() }, known.map((column) => el("option", { value: column.measure }, column.heading)));
  const redraw = () => {
    const heading = chosen.selectedOptions[0]?.textContent;
    const frontier = run.frontiers[chosen.value];
    around.replaceChildren(...present([
      frontier && drawn("Score against tokens read", frontier),
      against(run, chosen.value, "compression_rate", "compression rate, %", heading, "Score against compression"),
      against(run, chosen.value, "length", "words of an answer", heading, "Answer length against score"),
      sizes,
    ]));
  };
  redraw();
  const lookups = run.measures.indexOf("lookups");
  return [
    known.length > 0 && el("label", null, "Score: ", chosen),
    around,
    lookups >= 0 && strips("Look-ups per question: how many questions took so many", byShownName(await load(`measure-${lookups}`), names), "method"),
  ];
}

function byShownName(values, names) {
  return Object.fromEntries(Object.entries(values).map(([method, own]) => [names[method] ?? method, own]));
}

function against({ report, method_names: names }, measure, other, labelX, labelY, title) {
  const points = report.rows.filter((row) => row.means[measure]?.mean != null && row.means[other]?.mean != null).map((row) => {
    const { mean, low, high } = row.means[measure];
    return { name: row.by === null ? names[row.method] : `${names[row.method]}, ${row.by}`, x: row.means[other].mean, y: mean, low, high };
  });
  return points.length ? [scatter(title, points, labelX, labelY)] : [];
}

function costs({ report, method_names: names }) {
  const words = (name) => name.replaceAll("_", " ");
  const counted = ["answered", "unscored", "calls", "tokens", "memory_calls", "memory_tokens", "judging_calls", "judging_tokens"];
  const memory = Object.keys(report.memories[0] ?? {});
  const stage = ["stage", "calls", "prompt_tokens", "cached_tokens", "cached_share", "reply_tokens"];
  return [
    el("h3", null, "Stages"),
    table(stage.map(words), report.stages.map((row) => stage.map((name) => row[name]))),
    report.memories.length > 0 && [el("h3", null, "Memories"), table(memory.map(words), report.memories.map((row) => memory.map((name) => (name === "memory" ? el("span", null, methodName(row[name])) : row[name]))))],
    el("h3", null, "Methods"),
    table(["method", ...counted.map(words)], report.rows.map((row) => [el("span", null, methodName(row.by === null ? names[row.method] : `${names[row.method]}, ${row.by}`)), ...counted.map((name) => row.counts[name] ?? null)])),
  ];
}

function problems(run) {
  if (!run.problems.length) return el("p", null, "No row has a problem.");
  const rows = run.problems.map((row) => [
    el("a", { href: link({ view: "questions", problem: row.problem }) }, row.problem),
    row.stage, row.table_name, row.made_by, row.num_rows, row.detail,
  ]);
  return table(["problem", "stage", "table", "method or memory", "rows", "for example"], rows);
}
