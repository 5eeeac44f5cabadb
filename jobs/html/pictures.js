// A picture that comes as SVG. Nothing in it can run: the page's policy allows no script within.
function imported(text) {
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

// How much every method differs from the chosen baseline: a row each, with the interval drawn, p and
// the questions won and lost. Only what a test says is marked.
async function differences(run, measure, parameters) {
  const place = run.report.measures.indexOf(measure);
  const by = await load(`against-${place}`);
  const methods = methodsOf(run).filter((name) => name in by);
  const given = parameters.get("baseline") ?? "";
  const other = document.body.dataset.served && given.startsWith("run:") ? given.slice(4) : null;
  if (!methods.length && other === null) return null;
  const mean = (name) => run.report.rows.find((row) => row.method === name && row.by === null)?.means[measure]?.mean ?? Infinity;
  const bm25 = methods.find((name) => name.startsWith("bm25"));
  const lowest = [...methods].sort((a, b) => mean(a) - mean(b))[0];
  const baseline = methods.includes(given) ? given : bm25 ?? lowest;
  const rows = other === null ? by[baseline] : await load(`against-${place}-${encodeURIComponent(other)}`);
  const named = [...methods.map((name) => [name, shortName(run, name)]), ...(other === null ? [] : [[given, `the same method of ${other}`]])];
  const ends = rows.flatMap(({ figures }) => [figures.difference, figures.low ?? 0, figures.high ?? 0]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const at = (value) => `${(4 + (92 * (value - low)) / (high - low || 1)).toFixed(2)}%`;
  const difference = ({ figures, p_holm: p }) => el("span", { class: p < 0.05 ? "best" : null }, signed(figures.difference),
    el("small", { class: "interval" }, figures.low === null ? "n/a" : `${signed(figures.low)} to ${signed(figures.high)}`));
  const change = (event) => { location.hash = linkWith({ baseline: event.target.value }); };
  const columns = [
    {
      heading: "method", value: (row) => shortName(run, row.method),
      shown: (row) => el("span", { title: row.method }, methodDot(run, row.method), shortName(run, row.method)),
    },
    {
      heading: "difference", isNumber: true, value: (row) => row.figures.difference, shown: difference,
      about: "mean of method minus baseline over the questions that both have a value of, with its 95% interval over documents",
    },
    {
      heading: [...new Set([low, 0, high])].map((end) => number(end)).join(" … "),
      value: (row) => row.figures.difference, shown: (row) => forestRow(run, row, at),
    },
    {
      heading: "p", isNumber: true, value: (row) => row.p_holm,
      about: "two-sided sign-flip test over documents, adjusted by Holm for the methods shown",
      shown: ({ p_holm: p }) => (p < 0.001 ? "<0.001" : p.toPrecision(2)),
    },
    {
      heading: "won–lost", isNumber: true, value: (row) => row.figures.wins - row.figures.losses,
      about: "questions on which the method is higher, and on which the baseline is; others are ties",
      shown: (row) => `${row.figures.wins}–${row.figures.losses}`,
    },
  ];
  return el("figure", { class: "forest" },
    el("figcaption", null, "Differences in ", headingOf(run, measure), " to ", filter("baseline", named, other === null ? baseline : given, change)),
    dataTable({ caption: `Differences in ${headingOf(run, measure)}`, columns, rows }),
    el("p", { class: "quiet" }, rows.length
      ? `Filled: p < 0.05. ${plural(rows[0].figures.documents, "document")}${rows[0].figures.low === null ? "; intervals need ten" : ""}.`
      : "No method and question in common."));
}

function methodDot(run, method) {
  return el("span", { class: `dot ${toneOf(run, method)}`, "aria-hidden": "true" });
}

function forestRow(run, { method, figures, p_holm: p }, at) {
  const told = `${shortName(run, method)}: ${signed(figures.difference)}`;
  return svg("svg", { class: `forest-row ${toneOf(run, method)}`, role: "img", "aria-label": told, width: "100%", height: 40 },
    svg("line", { x1: at(0), x2: at(0), y1: 0, y2: 40, class: "zero" }),
    figures.low !== null && svg("line", { x1: at(figures.low), x2: at(figures.high), y1: 20, y2: 20, class: "whisker" }),
    svg("circle", { cx: at(figures.difference), cy: 20, r: 4.5, class: p < 0.05 ? "sure" : "unsure" }));
}

function signed(value) {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}`;
}
