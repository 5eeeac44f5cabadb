// The lists of questions and of documents: filters, search, sort and page are in the address.
const PAGE_ROWS = 25;
const OUTCOMES = [["right", "right (100)"], ["between", "in between"], ["wrong", "wrong (0)"], ["none", "no score"]];

async function questionList(run, parameters) {
  const filters = filtersOf(parameters);
  const { columns, matches, measure, measures } = await questionFilter(run, filters);
  const types = [...new Set(run.questions.map((row) => row.question_type).filter((type) => type !== null))].sort();
  const problems = [...new Set(run.question_problems.map((row) => row.problem))].sort();
  const change = (name) => (event) => { location.hash = listLink({ ...filters, [name]: event.target.value }); };
  return { subject: "list=questions", title: "Questions", parts: [
    heading("Questions"),
    causeRemark(run, parameters),
    el("div", { class: "filters" },
      filter("method", methodsOf(run).map((name) => [name, shortName(run, name)]), filters.of, change("of"), "all (mean)"),
      filter("score", measures.map((name) => [name, headingOf(run, name)]), measure, change("measure")),
      filter("type", types, filters.type, change("type"), "all"),
      filter("outcome", OUTCOMES, filters.outcome, change("outcome"), "all"),
      filter("problem", problems, filters.problem, change("problem"), "all")),
    longTable({ caption: "Questions", columns, rows: run.questions.filter(matches), parameters }),
  ] };
}

async function questionFilter(run, filters) {
  const measures = [...new Set([...run.report.measures.filter((name) => run.measures.includes(name)), ...run.measures])];
  const measure = measures.includes(filters.measure) ? filters.measure : measures[0];
  const values = measure === undefined ? {} : await load(`measure-${run.measures.indexOf(measure)}`);
  const problemsOf = new Map();
  for (const { number, method, problem } of run.question_problems) {
    if (!filters.of || method === filters.of) problemsOf.set(number, [...new Set([...(problemsOf.get(number) ?? []), problem])]);
  }
  const caused = filters.cause === "" ? null : new Set(run.causes[filters.cause]?.questions);
  const value = ({ number }) => { // of one method, or the mean over all that have one
    if (filters.of) return values[filters.of]?.[number] ?? null;
    const known = Object.values(values).map((list) => list[number]).filter((score) => score !== null);
    return known.length ? known.reduce((sum, score) => sum + score, 0) / known.length : null;
  };
  const address = (row) => { // with the search as it is typed
    const now = filtersOf(new URLSearchParams(location.hash.slice(1)));
    return link({ question: row.question_id, method: now.of, ...now });
  };
  const outcomeOf = (score) => (score === null ? "none" : score >= 100 ? "right" : score <= 0 ? "wrong" : "between");
  const columns = [
    {
      heading: "question", value: (row) => `${row.question_id} ${row.question}`,
      shown: (row) => el("a", { href: address(row), dir: "auto" }, el("b", null, row.question_id), ` ${row.question}`),
    },
    { heading: headingOf(run, measure) ?? "score", value, isNumber: true },
    { heading: "problem", value: (row) => problemsOf.get(row.number)?.join(", ") ?? "" },
    { heading: "type", value: (row) => row.question_type ?? "-" },
    { heading: "document", value: (row) => run.documents[row.document].document_id },
  ];
  const matches = (row) =>
    (caused === null || caused.has(row.number)) &&
    (!filters.type || row.question_type === filters.type) &&
    (!filters.problem || (problemsOf.get(row.number) ?? []).includes(filters.problem)) &&
    (!filters.outcome || filters.outcome === outcomeOf(value(row)));
  return { columns, matches, measure, measures };
}

// The questions as the list shows them, in its order: what next and previous go through.
async function listedQuestions(run, filters) {
  if (!FILTERS.some((name) => filters[name])) return run.questions;
  const { columns, matches } = await questionFilter(run, filters);
  return sortedRows(searched(run.questions.filter(matches), columns, filters.search), columns, filters.sort);
}

// The rows that have all words of the search; a "phrase" is one of them.
function searched(rows, columns, text) {
  const words = (text.toLowerCase().match(/"[^"]+"|[^\s"]+/g) ?? []).map((word) => word.replaceAll('"', ""));
  if (!words.length) return rows;
  return rows.filter((row) => {
    const all = columns.map((column) => column.value(row) ?? "").join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

function longTable({ caption, columns, rows, parameters }) {
  const around = el("div");
  const state = { search: parameters.get("search") ?? "", sort: parameters.get("sort") ?? "", page: Number(parameters.get("page")) || 1 };
  const change = (changes) => {
    Object.assign(state, changes);
    history.replaceState(null, "", linkWith({ ...state, page: state.page > 1 ? state.page : null })); // no step in the history
    shownAt = location.hash;
    draw();
  };
  const draw = () => {
    const matching = sortedRows(searched(rows, columns, state.search), columns, state.sort);
    const pages = Math.max(Math.ceil(matching.length / PAGE_ROWS), 1);
    state.page = Math.min(Math.max(state.page, 1), pages);
    const first = (state.page - 1) * PAGE_ROWS;
    around.replaceChildren(
      dataTable({ caption, columns, rows: matching.slice(first, first + PAGE_ROWS), sort: state.sort, onSort: (sort) => change({ sort, page: 1 }) }),
      pager(matching.length, rows.length, first, state.page, pages, (page) => { location.hash = linkWith({ page }); }));
  };
  const field = el("input", { type: "search", id: "search", value: state.search, input: (event) => change({ search: event.target.value, page: 1 }) });
  draw();
  return [el("label", { class: "search" }, "Search ", field), around];
}

function pager(count, of, first, page, pages, go) {
  const button = (to, shown, name) => el("button", {
    type: "button", id: `page-${name}`, disabled: to < 1 || to > pages, "aria-label": `${name} page`, click: () => go(to),
  }, shown);
  const told = count ? `${number(first + 1)}–${number(Math.min(first + PAGE_ROWS, count))} of ${number(count)}` : "None";
  return el("p", { class: "pager" }, button(page - 1, "‹", "previous"), button(page + 1, "›", "next"),
    el("span", { role: "status" }, facts(told, count < of && `${number(of)} in all`)));
}

function filter(name, choices, chosen, change, all) {
  const options = choices.map((choice) => (Array.isArray(choice) ? choice : [choice, choice]));
  return el("label", null, `${name} `, el("select", { name, id: `filter-${name}`, change },
    all && el("option", { value: "" }, all),
    options.map(([value, shown]) => el("option", { value, selected: value === chosen }, shown))));
}

function documentList(run, parameters) {
  const asked = new Map();
  for (const row of run.questions) asked.set(row.document, (asked.get(row.document) ?? 0) + 1);
  const columns = [
    {
      heading: "document", value: (row) => `${row.document_id} ${row.title}`,
      shown: (row) => el("a", { href: link({ document: row.document_id }), dir: "auto" },
        el("b", null, row.document_id), ` ${row.title === row.document_id ? "" : row.title}`),
    },
    { heading: "words", value: (row) => row.num_words, isNumber: true },
    { heading: "questions", value: (row) => asked.get(row.number) ?? 0, isNumber: true },
    { heading: "problem", value: (row) => row.problem ?? (row.skipped ? "skipped" : "") },
  ];
  const cause = run.causes[parameters.get("cause") ?? ""];
  const rows = cause ? cause.documents.map((number) => run.documents[number]) : run.documents;
  return { subject: "list=documents", title: "Documents", parts: [
    heading("Documents"), causeRemark(run, parameters), longTable({ caption: "Documents", columns, rows, parameters }),
  ] };
}
