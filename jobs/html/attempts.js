// What each method and repeat did for a question: an attempt has its sections, calls and answer.
function attemptsAt(question, run) {
  const attempts = new Map();
  const at = (row) => {
    const key = JSON.stringify([row.method, row.repeat]);
    if (!attempts.has(key)) attempts.set(key, { key, method: row.method, repeat: row.repeat, sections: [], calls: [] });
    return attempts.get(key);
  };
  for (const section of question.sections) at(section).sections.push(section);
  for (const call of question.calls) at(call).calls.push(call);
  for (const lane of question.lanes) at(lane).lane = lane;
  const order = methodsOf(run);
  const all = [...attempts.values()].sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method) || a.repeat - b.repeat);
  const hasRepeats = all.some((one) => one.repeat > 0);
  for (const one of all) {
    one.rows = (table) => one.sections.filter((section) => section.table === table).flatMap((section) => section.rows);
    one.answer = one.rows("answers")[0] ?? null;
    one.memory = one.sections.find((section) => section.table === "answers")?.memory ?? null;
    one.name = shortName(run, one.method) + (hasRepeats ? `, repeat ${one.repeat}` : "");
    const failed = one.sections.flatMap(({ stage, rows }) => (rows ?? []).filter((row) => row.problem).map((row) => ({ stage, ...row })));
    const causes = failed.filter((row) => row.problem !== "upstream"); // else the first thing that all of it follows from
    const shown = causes.length ? causes : failed.filter((row) => row.detail).slice(0, 1);
    one.problems = [...new Set(shown.map((row) => (row.problem === "upstream" ? row.detail : `${row.problem} in ${row.stage}`)))];
    one.address = { method: one.method, repeat: hasRepeats ? one.repeat : null };
  }
  return all;
}

function methodsOf(run) {
  return [...new Set(run.report.rows.map((row) => row.method))];
}

function shortName(run, method) {
  return run.method_names[method] ?? method;
}

function toneOf(run, method) {
  return `tone-${run.tones[method] ?? 0}`;
}

// The two attempts that are looked at: by default the first, or the first that the cause of the address
// reached, and the one whose result differs most.
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

// How an attempt ended: {value, mark, word, score, kind}; the mark and word say what its color does.
function resultOf(one, question, measure) {
  const { answer } = one;
  const score = one.rows("scores").find((row) => row.metric === measure)?.value ?? null;
  const outcome = (mark, word, kind, value) => ({ mark, word, kind, value: value ?? score, score });
  if (answer?.skipped) return outcome("–", "skipped", "");
  if (answer?.problem) return outcome("!", answer.problem, "bad", 0);
  if (answer && question.answer_index !== null) {
    return answer.answer_index === question.answer_index ? outcome("✓", "right", "good", 100) : outcome("✗", "wrong", "bad", 0);
  }
  const labels = one.rows("ratings").filter((row) => !row.skipped).map((row) => row.label);
  for (const [label, mark, kind, value] of [["yes", "✓", "good", 100], ["partially", "~", "some", 50], ["no", "✗", "bad", 0]]) {
    if (labels.includes(label)) return outcome(mark, label, kind, value);
  }
  return labels.length ? outcome("?", "unscored", "") : outcome("", "", "");
}

function resultBadge({ mark, word, kind }) {
  return word ? el("span", { class: `badge ${kind}` }, el("span", { "aria-hidden": "true" }, `${mark} `), word) : null;
}
