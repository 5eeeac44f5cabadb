// What each method and repeat did for a question: an attempt has its sections, calls and answer.
function attemptsAt(question, run) {
  const found = new Map();
  const at = (row) => {
    const key = JSON.stringify([row.method, row.repeat]);
    if (!found.has(key)) found.set(key, { key, method: row.method, repeat: row.repeat, sections: [], calls: [] });
    return found.get(key);
  };
  for (const section of question.sections) at(section).sections.push(section);
  for (const call of question.calls) at(call).calls.push(call);
  for (const lane of question.lanes) at(lane).lane = lane;
  const order = methodsOf(run);
  const all = [...found.values()].sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method) || a.repeat - b.repeat);
  const hasRepeats = all.some((one) => one.repeat > 0);
  for (const one of all) {
    one.rows = (table) => one.sections.filter((section) => section.table === table).flatMap((section) => section.rows);
    one.answer = one.rows("answers")[0] ?? null;
    one.memory = one.sections.find((section) => section.table === "answers")?.memory ?? null;
    one.name = shortName(run, one.method) + (hasRepeats ? `, repeat ${one.repeat}` : "");
    one.problems = problemsOf(one);
    one.address = { method: one.method, repeat: hasRepeats ? one.repeat : null };
  }
  return all;
}

// What went wrong in an attempt: the stages and problems of its rows; where all of it is the
// consequence of something before it, the first of that.
function problemsOf(one) {
  const rows = one.sections.filter(({ rows }) => rows).flatMap(({ stage, rows }) => rows.filter((row) => row.problem).map((row) => ({ stage, ...row })));
  const own = rows.filter((row) => row.problem !== "upstream");
  const shown = own.length ? own : rows.filter((row) => row.detail).slice(0, 1);
  return [...new Set(shown.map((row) => (row.problem === "upstream" ? row.detail : `${row.problem} in ${row.stage}`)))];
}

function methodsOf(run) {
  return [...new Set(run.report.rows.map((row) => row.method))];
}

function shortName(run, method) {
  return run.method_names[method] ?? method;
}

// The colour of a method, which is the same in every picture.
function toneOf(run, method) {
  return `tone-${run.tones[method] ?? 0}`;
}

// The two attempts that are looked at: those of the address; else the first, or the first that the
// cause of the address reached; and beside it the one whose result differs most, as that explains a
// failure.
function pinned(run, attempts, question, measure, parameters) {
  const cause = run.causes[parameters.get("cause") ?? ""];
  const reached = attempts.find((one) => cause?.made_by.includes(one.method) && one.problems.length);
  const at = (name, repeat) => attempts.find((one) => one.method === name && String(one.repeat) === repeat) ?? attempts.find((one) => one.method === name);
  const a = at(parameters.get("method"), parameters.get("repeat")) ?? reached ?? attempts[0] ?? null;
  if (parameters.get("with") === "none") return { a, b: null };
  const given = at(parameters.get("with"), parameters.get("with_repeat"));
  const others = attempts.filter((one) => one !== a);
  const value = (one) => resultOf(one, question, measure).value ?? 0;
  const furthest = others.sort((one, other) => Math.abs(value(other) - value(a)) - Math.abs(value(one) - value(a)))[0];
  return { a, b: given && given !== a ? given : furthest ?? null };
}

// How an attempt ended: {value, mark, word, score, kind}; the mark and word say what its colour does.
function resultOf(one, question, measure) {
  const { answer } = one;
  const score = one.rows("scores").find((row) => row.metric === measure)?.value ?? null;
  const made = (mark, word, kind, value) => ({ mark, word, kind, value: value ?? score, score });
  if (answer?.skipped) return made("–", "skipped", "");
  if (answer?.problem) return made("!", answer.problem, "bad", 0);
  if (answer && question.answer_index !== null) {
    return answer.answer_index === question.answer_index ? made("✓", "right", "good", 100) : made("✗", "wrong", "bad", 0);
  }
  const labels = one.rows("ratings").filter((row) => !row.skipped).map((row) => row.label);
  if (labels.includes("yes")) return made("✓", "yes", "good", 100);
  if (labels.includes("partially")) return made("~", "partially", "some", 50);
  if (labels.includes("no")) return made("✗", "no", "bad", 0);
  return made(labels.length ? "?" : "", labels.length ? "unscored" : "", "");
}

function resultBadge({ mark, word, kind }) {
  return word ? el("span", { class: `badge ${kind}` }, el("span", { "aria-hidden": "true" }, `${mark} `), word) : null;
}
