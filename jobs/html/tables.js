// Sortable tables by DataTables. It reads cells and headings as HTML, so it is given elements, whose
// texts the browser has escaped; a cell is a text, a number, an element or {shown, order}. A cell of
// null has no order, with which a column of numbers is sorted by number still.
let DataTable = null;
const NOTHING_AROUND = { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null };

function table(headings, rows, options = {}) {
  const head = el("tr", null, headings.map((heading) => el("th", null, heading)));
  const body = rows.map((row) => el("tr", null, row.map(cell)));
  const made = el("table", { class: "display compact" }, el("thead", null, head), el("tbody", null, body));
  const around = el("div", { class: "scroll" }, made);
  new DataTable(made, { paging: false, order: [], autoWidth: false, layout: NOTHING_AROUND, ...options });
  return around;
}

function cell(value) {
  const isPlain = value === null || value === undefined || typeof value !== "object" || value.nodeName || Array.isArray(value);
  const { shown, order } = isPlain ? { shown: value, order: value } : value;
  const sorted = order?.nodeName || Array.isArray(order) ? el("td", null, order).textContent : order ?? "";
  const kind = typeof sorted === "number" ? "number" : null;
  return el("td", { "data-order": String(sorted), class: kind }, shown?.nodeName || Array.isArray(shown) ? shown : typeof shown === "number" ? number(shown) : shown ?? "-");
}

// A table of thousands of rows, of which only those on the page are made. A column is {heading,
// value(row), shown(row)}: what it is sorted and searched by, and the element that it shows.
function longTable(columns, rows, isShown) {
  const made = el("table", { class: "display compact" }, el("thead", null, el("tr", null, columns.map((column) => el("th", null, column.heading)))));
  const around = el("div", { class: "scroll" }, made);
  const listed = new DataTable(made, {
    data: rows,
    columns: columns.map((column) => ({
      data: (row, kind) => (kind === "display" ? shownCell(column, row) : kind === "filter" ? escaped(column.value(row)) : column.value(row)),
      type: column.isNumber ? "num" : "string",
      className: column.isNumber ? "number" : "",
      defaultContent: "",
    })),
    autoWidth: false, deferRender: true, order: [], pageLength: 25,
    language: { search: "Search:", emptyTable: "None.", zeroRecords: "None of them." },
  });
  listed.search.fixed("filters", (text, row) => isShown(row));
  listed.draw();
  return { around, listed };
}

function shownCell(column, row) {
  return el("span", null, column.shown ? column.shown(row) : String(column.value(row) ?? "-"));
}

// DataTables reads what it searches as HTML, too.
function escaped(value) {
  return String(value ?? "").replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
