// The runs of the warehouse, where the page is served; and how a run at work goes on.
const SECONDS_AT_WORK = 3, SECONDS_IDLE = 20, SECONDS_UNTIL_NEW = 15;

async function runList(run) {
  const rows = await load("runs");
  const { root } = document.body.dataset;
  const isThis = (row) => row.run === run.report.run;
  const columns = [
    {
      heading: "run", value: (row) => row.run,
      shown: (row) => el("a", { href: isThis(row) ? "#" : `${root}${row.path}` || "./", dir: "auto" },
        el("b", null, row.run), isThis(row) && " (this one)"),
    },
    { heading: "state", about: "problems: more rows with one than the run allows", value: (row) => row.state },
    { heading: "started", value: (row) => (row.started_at ?? "").replace("T", " ").slice(0, 16) },
    { heading: "corpus", value: (row) => row.corpus },
    { heading: "engine", value: (row) => row.engine },
    ...["documents", "questions", "methods"].map((name) => ({ heading: name, value: (row) => row[name], isNumber: true })),
    {
      heading: "differences", value: () => "",
      shown: (row) => (isThis(row) || !row.methods || !run.report.measures.length
        ? "-"
        : el("a", { href: link({ baseline: `run:${row.run}` }) }, "to this one's methods")),
    },
  ];
  return { subject: "list=runs", title: "Runs", parts: [heading("Runs"), dataTable({ caption: "Runs", columns, rows })] };
}

// What the server says of the run, every few seconds; new rows are shown on the overview by and by,
// elsewhere when they are asked for, so that nothing moves under a reader.
async function watchRun(wasRunning = false, since = performance.now()) {
  let isRunning = wasRunning;
  try {
    const { content } = await fetched("state");
    const isNew = content.is_running && document.body.dataset.view === "run" && performance.now() - since > 1000 * SECONDS_UNTIL_NEW;
    if (isNew) since = performance.now();
    tell(content.is_running && ["At work: ", content.text || `${content.workers} workers`, " ",
      el("button", { type: "button", click: () => showNew().catch((error) => tell(whyNot(error))) }, "Show what is new")]);
    if (isNew || (wasRunning && !content.is_running)) await showNew();
    isRunning = content.is_running; // else what is new is read again next time
  } catch (error) {
    tell(whyNot(error));
    if (error instanceof TypeError) return;
  }
  setTimeout(watchRun, 1000 * (isRunning ? SECONDS_AT_WORK : SECONDS_IDLE), isRunning, since);
}

async function showNew() {
  await fetched("fresh");
  chunks.clear();
  await show();
}

function tell(...parts) {
  document.getElementById("live").replaceChildren(...present(parts));
}

// An error of `fetch` itself is a TypeError: nothing answers at the address.
function whyNot(error) {
  return error instanceof TypeError ? "The server has ended; what is open stays." : `Not read: ${error.message}`;
}
