// Tables that are sorted by a click on a heading. A column is {heading, about, group, value(row),
// shown(row), isNumber}: what it is sorted and searched by, and the element or text that it shows.
// A sort is the column's number from 1, with - for descending.
function dataTable({ caption, columns, rows, sort = "", onSort = null }) {
  const body = el("tbody");
  const heads = columns.map(({ heading, about, isNumber }, index) => el("th", { scope: "col", class: isNumber ? "number" : null },
    el("button", { type: "button", class: "sort", click: () => sortBy(sort === String(index + 1) ? `-${index + 1}` : String(index + 1)) }, heading),
    about && el("span", { class: "tip", role: "tooltip" }, about)));
  const element = el("table", null, el("caption", { class: "hidden" }, caption),
    el("thead", null, groupRow(columns), el("tr", null, heads)), body);
  const draw = () => {
    heads.forEach((head, index) => head.setAttribute("aria-sort", { [index + 1]: "ascending", [`-${index + 1}`]: "descending" }[sort] ?? "none"));
    const none = el("tr", null, el("td", { colspan: columns.length, class: "quiet" }, "None."));
    body.replaceChildren(...(rows.length ? sortedRows(rows, columns, sort).map((row) => bodyRow(columns, row)) : [none]));
  };
  const sortBy = (chosen) => {
    if (onSort) return onSort(chosen);
    sort = chosen;
    draw();
  };
  draw();
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, element);
}

function table(caption, headings, rows) {
  const columns = headings.map((heading, index) => ({ heading, value: (row) => row[index] ?? null }));
  return dataTable({ caption, columns, rows });
}

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

// In order of a column; what has no value comes before everything else.
function sortedRows(rows, columns, sort) {
  const column = columns[Math.abs(Number(sort)) - 1];
  if (!column) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const compared = (a, b) => a === null || b === null ? (a !== null) - (b !== null)
    : typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  const keyed = rows.map((row) => [column.value(row), row]);
  return keyed.sort(([a], [b]) => sign * compared(a, b)).map(([, row]) => row);
}
