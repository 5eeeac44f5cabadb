// Causes of failure, each once and first, with what failed because of it and where that leads.
function causeTable(run) {
  if (!run.causes.length) return el("p", null, "No row has a problem.");
  const columns = [
    { heading: "cause", value: (row) => row.problem, shown: (row) => causeAnchor(run, row) },
    { heading: "stage", value: (row) => row.stage },
    { heading: "rows", about: "rows that have this problem themselves", value: (row) => row.num_rows, isNumber: true },
    { heading: "rows after it", about: "rows of later stages that could not be made because of it", value: (row) => row.num_after, isNumber: true },
    { heading: "questions", value: (row) => row.questions.length, isNumber: true },
    { heading: "documents", value: (row) => row.documents.length, isNumber: true },
    { heading: "methods or memories", value: (row) => row.made_by.map((name) => shortName(run, name)).join(", ") },
    { heading: "for example", value: (row) => row.detail },
  ];
  return dataTable({ caption: "Causes of problems", columns, rows: run.causes });
}

// To all of its rows: the questions that it reached, or where it reached none the documents. What a
// question file names wrongly is neither.
function causeAnchor(run, row) {
  const view = row.questions.length ? "questions" : row.documents.length ? "documents" : null;
  return el(view ? "a" : "span", { href: view && link({ view, cause: run.causes.indexOf(row) }) }, row.problem.replaceAll("_", " "));
}

function causeNote(run) {
  const [first] = run.causes;
  if (!first) return null;
  return el("p", { class: "note bad" }, el("b", null, plural(run.causes.length, "cause"), " of problems. "),
    "Most rows: ", causeAnchor(run, first), ` in ${first.stage}, ${plural(first.num_rows, "row")}. `,
    run.causes.length > 1 && el("a", { href: link({ part: "problems" }) }, "All causes"));
}

function causeRemark(run, parameters) {
  const cause = run.causes[parameters.get("cause")];
  if (!cause) return null;
  return el("p", { class: "note" }, `Only what ${cause.problem.replaceAll("_", " ")} in ${cause.stage} reached. `,
    cause.detail && el("span", { class: "text" }, `${cause.detail} `), el("a", { href: linkWith({ cause: null, page: null }) }, "Show all"));
}
