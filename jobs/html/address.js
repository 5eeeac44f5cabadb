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

function linkWith(changes) {
  return link({ ...here(), ...changes });
}

// The filters of the list of questions, which a question's address carries on. Their method is `of`
// there, as a question's own `method` is the one that is looked at.
function filtersOf(parameters) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
  return parameters.has("question") ? filters : { ...filters, of: parameters.get("method") ?? "" };
}

function listLink({ of, ...filters }) {
  return link({ view: "questions", method: of, ...filters });
}
