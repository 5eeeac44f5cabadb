// Tables that are sorted by a click on a heading. A column is {heading, about, group, value(row),
// shown(row), isNumber}: what it is sorted and searched by, and the element or text that it shows.
// A sort is the column's number from 1, with - for descending.
function dataTable({ caption, columns, rows, sort = "", onSort = null }) {
  const body = el("tbody");
  const heads = columns.map((column, index) => headCell(column, () => sortBy(nextSort(sort, index + 1))));
  const made = el("table", null, el("caption", { class: "hidden" }, caption),
    el("thead", null, groupRow(columns), el("tr", null, heads)), body);
  const draw = () => {
    heads.forEach((head, index) => head.setAttribute("aria-sort", sortOf(sort, index + 1)));
    const none = el("tr", null, el("td", { colspan: columns.length, class: "quiet" }, "None."));
    body.replaceChildren(...(rows.length ? sortedRows(rows, columns, sort).map((row) => bodyRow(columns, row)) : [none]));
  };
  const sortBy = (chosen) => {
    if (onSort) return onSort(chosen);
    sort = chosen;
    draw();
  };
  draw();
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, made);
}

// A table of ready cells: a text, a number, an element, or {shown, order}.
function table(caption, headings, rows) {
  const columns = headings.map((given, index) => ({
    ...(typeof given === "string" ? { heading: given } : given),
    value: (row) => orderOf(row[index]),
    shown: (row) => row[index]?.shown ?? (isPlain(row[index]) ? null : row[index]),
  }));
  return dataTable({ caption, columns, rows });
}

function isPlain(cell) {
  return cell === null || cell === undefined || typeof cell !== "object";
}

function orderOf(cell) {
  if (isPlain(cell)) return cell ?? null;
  if (cell.nodeName || Array.isArray(cell)) return el("span", null, cell).textContent;
  return cell.order;
}

function headCell({ heading, about, isNumber }, press) {
  const tip = about ? el("span", { class: "tip", role: "tooltip" }, about) : null;
  return el("th", { scope: "col", class: isNumber ? "number" : null },
    el("button", { type: "button", click: press, class: "sort" }, heading), tip);
}

// The names of groups of columns, above them; none where no column has a group.
function groupRow(columns) {
  if (!columns.some((column) => column.group)) return null;
  const runs = [];
  for (const { group = "" } of columns) {
    if (runs.at(-1)?.group === group) runs.at(-1).span++;
    else runs.push({ group, span: 1 });
  }
  return el("tr", { class: "groups" }, runs.map(({ group, span }) =>
    group ? el("th", { scope: "colgroup", colspan: span }, group) : el("td", { colspan: span })));
}

function bodyRow(columns, row) {
  return el("tr", null, columns.map((column, index) => {
    const value = column.value(row);
    const shown = column.shown?.(row) ?? (typeof value === "number" ? number(value) : value ?? "-");
    const isNumber = column.isNumber ?? typeof value === "number";
    return el(index ? "td" : "th", { scope: index ? null : "row", class: isNumber ? "number" : null }, shown);
  }));
}

function nextSort(sort, column) {
  return sort === String(column) ? `-${column}` : String(column);
}

function sortOf(sort, column) {
  return sort === String(column) ? "ascending" : sort === `-${column}` ? "descending" : "none";
}

// In order of a column; what has no value comes before everything else.
function sortedRows(rows, columns, sort) {
  const column = columns[Math.abs(Number(sort)) - 1];
  if (!column) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const keyed = rows.map((row) => [column.value(row), row]);
  return keyed.sort(([a], [b]) => sign * compared(a, b)).map(([, row]) => row);
}

function compared(a, b) {
  if (a === null || b === null) return (a !== null) - (b !== null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
