// Model calls: the exact prompt, the reply, any thinking, and what it took.
const SETTINGS = ["temperature", "seed", "max_reply_tokens", "constraint"];

function callList(calls, title = null) {
  if (!calls.length) return null;
  return [title && el("h3", null, title), el("div", { class: "calls" }, calls.map(callPart))];
}

function callPart(call) {
  const place = [["page", call.page_index], ["turn", call.turn], ["reference", call.reference_index]];
  const title = el("span", null, el("b", null, call.stage), " ", facts(
    call.prompt,
    ...place.map(([name, value]) => value !== null && `${name} ${value}`),
    `${number(call.prompt_tokens)} + ${number(call.reply_tokens)} tokens`,
    `${call.seconds.toFixed(2)} s`,
    call.finish_reason !== "stop" && call.finish_reason,
    call.attempt > 1 && `attempt ${call.attempt}`,
    call.is_shared && "copied from an equal request",
  ), problemBadge(call.problem));
  const settings = SETTINGS.filter((name) => call[name] !== null)
    .map((name) => `${name} ${typeof call[name] === "object" ? JSON.stringify(call[name]) : call[name]}`);
  const about = facts(call.engine, ...settings, `${number(call.cached_tokens)} prompt tokens cached`,
    `request ${call.request_sha}`, call.started_at, call.worker);
  const part = folded(title, () => [
    call.messages === null && el("p", { class: "note" }, "What was sent was not kept."),
    (call.messages ?? []).map((message) => [el("h4", null, `${message.role} (exactly as sent)`), el("pre", { class: "prompt" }, message.content)]),
    call.thinking && [el("h4", null, "thinking"), el("pre", { class: "thinking" }, call.thinking)],
    el("h4", null, "reply"), el("pre", { class: "reply" }, call.reply === "" ? "(empty)" : call.reply),
    el("p", { class: "quiet" }, about),
  ]);
  part.classList.add("call");
  return part;
}

function problemBadge(problem) {
  return problem ? el("span", { class: "badge bad" }, problem) : null;
}
