// What a method did before it answered: its queries with what they found, its look-ups, its walk.
function queriesPart(queries, lookups, slot) {
  if (!queries.length) return null;
  const items = queries.map((query) => {
    const found = lookups.filter((lookup) => lookup.query_index === query.query_index);
    return el("li", null,
      el("div", null, el("span", { class: "badge" }, query.kind), " ", el("span", { class: "text" }, query.text ?? "-"),
        query.dropped && el("span", { class: "badge" }, `not searched for: ${query.dropped.replaceAll("_", " ")}`), problemBadge(query.problem)),
      query.start_date && el("div", { class: "quiet" }, `from ${query.start_date} to ${query.end_date}`),
      found.map((lookup) => lookupPart(lookup, slot)));
  });
  return [el("h3", null, "Clues and queries, with what they found"), el("ol", { class: "queries", start: 0 }, items)];
}

function lookupsPart(lookups, slot) {
  const shown = lookups.filter((row) => row.query_index === null && (row.requested.length || row.dropped.length || row.problem || lookups.length > 1));
  return shown.length ? [el("h3", null, "Look-ups"), el("ol", { class: "queries", start: shown[0].turn }, shown.map((row) => el("li", null, lookupPart(row, slot))))] : null;
}

function lookupPart(row, slot) {
  const ranked = row.ranked.slice(0, 8).map((page) => `${page.page_index}${page.score === null ? "" : ` (${page.score.toFixed(2)})`}`);
  return el("div", { class: "found" },
    "read ", row.used === null ? "nothing, as there was no reply" : pageLinks(row.used, slot),
    String(row.requested) !== String(row.used) && el("span", { class: "quiet" }, ` asked for ${row.requested.join(", ") || "none"}`),
    row.dropped.length > 0 && el("span", { class: "quiet" }, ` left out ${row.dropped.map((one) => `${one.page_index} (${one.reason.replaceAll("_", " ")})`).join(", ")}`),
    ranked.length > 0 && el("div", { class: "quiet" }, `ranking: ${ranked.join(", ")}${row.ranked.length > 8 ? " …" : ""}`),
    problemBadge(row.problem), row.detail && el("span", { class: "quiet text" }, ` ${row.detail}`));
}

// The visits of a walk, indented by depth, each with the node's summary or its segment's text, and
// what was passed over there.
function walkPart(visits, nodes, pages, evidence, length) {
  if (!visits.length) return null;
  const steps = visits.map((visit) => {
    const node = nodes.find((one) => one.node_index === visit.node_index);
    const page = pages.find((one) => one.page_index === visit.page_index);
    const step = el("li", { class: visit.action === "answer" ? "step last" : "step" },
      el("div", null, el("b", null, `${visit.turn}. node ${visit.node_index ?? "-"}`),
        el("span", { class: "quiet" }, visit.page_index === null ? "" : ` segment ${visit.page_index}`),
        " ", el("span", { class: "badge" }, actionOf(visit)), node && holdsAny(node, evidence) && el("span", { class: "badge evidence" }, "evidence below"), problemBadge(visit.problem)),
      passedOver(visit, node, nodes, evidence),
      visit.reason && el("div", { class: "text" }, visit.reason),
      el("div", { class: "quiet" }, facts(
        visit.chosen_by === "rule" && "the only legal action, no call",
        visit.num_invalid > 0 && plural(visit.num_invalid, "reply").replace("replys", "replies") + " without a legal action",
        visit.rejected.length > 0 && `could not go back to ${visit.rejected.join(", ")}`,
        visit.num_memory_words > 0 && `${number(visit.num_memory_words)} words of working memory${visit.is_memory_cut ? ", cut" : ""}`)),
      (page || node) && folded(page ? "the segment's text" : "the node's summary", () => el("div", { class: "text" }, (page ? page.text : node.summary) ?? "-")));
    step.style.marginInlineStart = `${Math.min(visit.depth, 12) * 1.2}em`;
    return step;
  });
  return [el("h3", null, "Walk"), walkTree(visits, nodes, evidence, length), el("ol", { class: "walk" }, steps)];
}

// The children that a visit did not enter; those that hold evidence are marked.
function passedOver(visit, node, nodes, evidence) {
  const left = (node?.children ?? []).filter((index) => index !== visit.to_node);
  if (visit.action !== "enter" || !left.length) return null;
  return el("div", { class: "quiet" }, "passed over: ", left.map((index, place) => {
    const child = nodes.find((one) => one.node_index === index);
    const isGold = child && holdsAny(child, evidence);
    return [place > 0 && ", ", `node ${index}`, isGold && [" ", el("span", { class: "badge evidence" }, "evidence")]];
  }));
}

function actionOf(visit) {
  if (visit.action === "enter" || visit.action === "revert") return `${visit.action} → node ${visit.to_node ?? "-"}`;
  return visit.action ?? "no action";
}
