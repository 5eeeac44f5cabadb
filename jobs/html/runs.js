// The runs of the warehouse, where the page is served; and how a run at work goes on.
const SECONDS_AT_WORK = 3, SECONDS_IDLE = 20, SECONDS_UNTIL_NEW = 15;

async function runList(run) {
  const rows = await load("runs");
  const { root, served } = document.body.dataset;
  const own = (row) => row.run === run.report.run;
  const columns = [
    { heading: "run", value: (row) => row.run, shown: (row) => el("a", { href: own(row) ? "#" : `${root}${row.path}` || "./", "data-step": "", dir: "auto" }, el("b", null, row.run), own(row) && " (this one)") },
    { heading: "state", about: "problems: more rows with one than the run allows", value: (row) => row.state },
    { heading: "started", value: (row) => (row.started_at ?? "").replace("T", " ").slice(0, 16) },
    { heading: "corpus", value: (row) => row.corpus },
    { heading: "engine", value: (row) => row.engine },
    ...["documents", "questions", "methods"].map((name) => ({ heading: name, value: (row) => row[name], isNumber: true })),
    ...(served === "view" ? [{ heading: "differences", value: () => "", shown: (row) => (own(row) ? "-" : el("a", { href: link({ baseline: `run:${row.run}` }) }, "to this one's methods")) }] : []),
  ];
  return { subject: "list=runs", title: "Runs", parts: [heading("Runs"), dataTable({ caption: "Runs", columns, rows })] };
}

// What the server says of the run, every few seconds; new rows are shown on the overview by and by,
// elsewhere when they are asked for, so that nothing moves under a reader.
async function watchRun(wasRunning = false, since = performance.now()) {
  const told = document.getElementById("live");
  try {
    const { content } = await fetched("state");
    if (content.is_running) told.replaceChildren("At work: ", content.text || `${content.workers} workers`, " ", el("button", { type: "button", click: showNew }, "Show what is new"));
    else told.replaceChildren();
    const isDue = content.is_running && document.body.dataset.view === "run" && performance.now() - since > 1000 * SECONDS_UNTIL_NEW;
    const hasEnded = wasRunning && !content.is_running;
    if (isDue || hasEnded) await showNew();
    setTimeout(watchRun, 1000 * (content.is_running ? SECONDS_AT_WORK : SECONDS_IDLE), content.is_running, isDue ? performance.now() : since);
  } catch {
    told.replaceChildren("The server has ended; what is open stays.");
  }
}

async function showNew() {
  await fetched("fresh");
  chunks.clear();
  await show();
}
