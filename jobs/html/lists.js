// The lists of questions, with search and filters, and of documents.
async function questionList(run, parameters) {
  const given = Object.fromEntries(["method", "type", "outcome", "problem", "measure"].map((name) => [name, parameters.get(name) ?? ""]));
  const choices = listChoices(run, given);
  const measure = run.measures.includes(given.measure) ? given.measure : choices.measures[0];
  const values = measure === undefined ? {} : await load(`measure-${run.measures.indexOf(measure)}`);
  const problemsOf = problemsByQuestion(run, given.method);
  const value = (row) => outcome(values, row.number, given.method);
  const change = (name) => (event) => { location.hash = link({ view: "questions", ...given, [name]: event.target.value }); };
  const { around } = longTable([
    { heading: "question", value: (row) => `${row.question_id} ${row.question}`, shown: (row) => questionLink(row, given.method) },
    { heading: choices.heading(measure), value: (row) => value(row) ?? -1, shown: (row) => number(value(row)), isNumber: true },
    { heading: "problem", value: (row) => problemsOf.get(row.number)?.join(", ") ?? "" },
    { heading: "type", value: (row) => row.question_type ?? "-" },
    { heading: "document", value: (row) => run.documents[row.document].document_id },
  ], run.questions, (row) =>
    (!given.type || row.question_type === given.type) &&
    (!given.problem || (problemsOf.get(row.number) ?? []).includes(given.problem)) &&
    (!given.outcome || isOutcome(value(row), given.outcome)));
  return [
    el("h2", null, "Questions"),
    el("div", { class: "filters" },
      filter("method", choices.methods, given.method, change("method"), "all (mean)"),
      filter("score", choices.measures.map((name) => [name, choices.heading(name)]), measure, change("measure")),
      filter("type", choices.types, given.type, change("type"), "all"),
      filter("outcome", [["right", "right (100)"], ["between", "in between"], ["wrong", "wrong (0)"], ["none", "no score"]], given.outcome, change("outcome"), "all"),
      filter("problem", choices.problems, given.problem, change("problem"), "all")),
    around,
  ];
}

function listChoices(run, given) {
  const headings = new Map(run.report.columns.map((column) => [column.measure, column.heading]));
  const quality = run.report.measures.filter((name) => run.measures.includes(name));
  return {
    heading: (name) => headings.get(name) ?? name ?? "score",
    measures: [...quality, ...run.measures.filter((name) => !quality.includes(name))],
    methods: [...new Set(run.report.rows.map((row) => row.method))],
    types: [...new Set(run.questions.map((row) => row.question_type).filter((type) => type !== null))].sort(),
    problems: [...new Set([...run.question_problems.map((row) => row.problem), ...(given.problem ? [given.problem] : [])])].sort(),
  };
}

function filter(name, choices, chosen, change, all) {
  const options = choices.map((choice) => (Array.isArray(choice) ? choice : [choice, choice]));
  return el("label", null, `${name} `, el("select", { name, change },
    all && el("option", { value: "" }, all),
    options.map(([value, shown]) => el("option", { value, selected: value === chosen }, shown))));
}

function questionLink(row, method) {
  return el("a", { href: link({ question: row.question_id, method }) }, el("b", null, row.question_id), ` ${row.question}`);
}

function problemsByQuestion(run, method) {
  const found = new Map();
  for (const row of run.question_problems) {
    if (method && row.method !== method) continue;
    const codes = found.get(row.number) ?? [];
    if (!codes.includes(row.problem)) codes.push(row.problem);
    found.set(row.number, codes);
  }
  return found;
}

// The value of one method, or the mean over all that have one; null without one.
function outcome(values, number, method) {
  if (method) return values[method]?.[number] ?? null;
  const known = Object.values(values).map((list) => list[number]).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function isOutcome(value, wanted) {
  if (value === null) return wanted === "none";
  return wanted === (value >= 100 ? "right" : value <= 0 ? "wrong" : "between");
}

function documentList(run) {
  const asked = new Map();
  for (const row of run.questions) asked.set(row.document, (asked.get(row.document) ?? 0) + 1);
  const { around } = longTable([
    { heading: "document", value: (row) => `${row.document_id} ${row.title}`, shown: (row) => el("a", { href: link({ document: row.document_id }) }, el("b", null, row.document_id), ` ${row.title === row.document_id ? "" : row.title}`) },
    { heading: "words", value: (row) => row.num_words, shown: (row) => number(row.num_words), isNumber: true },
    { heading: "questions", value: (row) => asked.get(row.number) ?? 0, isNumber: true },
    { heading: "problem", value: (row) => row.problem ?? (row.skipped ? "skipped" : "") },
  ], run.documents, () => true);
  return [el("h2", null, "Documents"), around];
}
