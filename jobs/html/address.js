// The address after the # says what is shown and how: every view can be linked, and gone back to.
const FILTERS = ["of", "type", "outcome", "problem", "cause", "measure", "search", "sort"];

// The address within this page that shows something: link({question: "q1"}) is "#question=q1".
function link(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return "#" + new URLSearchParams(given).toString();
}

function here() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

// The address of this view with some parameters changed.
function linkWith(changes) {
  return link({ ...here(), ...changes });
}

// Changes parameters of the view that is shown already, without a step in the history.
function keepHere(changes) {
  history.replaceState(null, "", linkWith(changes));
  shownAt = location.hash;
}

// The filters of the list of questions, which a question's address carries on. Their method is `of`
// there, as a question's own `method` is the one that is looked at.
function filtersOf(parameters) {
  const found = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
  return parameters.has("question") ? found : { ...found, of: parameters.get("method") ?? "" };
}

function questionLink(row, filters, others = {}) {
  return link({ question: row.question_id, method: filters.of, ...filters, ...others });
}

function listLink({ of, ...filters }, others = {}) {
  return link({ view: "questions", method: of, ...filters, ...others });
}
