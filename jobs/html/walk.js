// What a method did before it answered: its queries with what they found, its look-ups, its walk.

function queriesPart(queries, lookups, slot) {
  if (!queries.length) return null;
  const items = queries.map((query) => {
    const ofQuery = lookups.filter((lookup) => lookup.query_index === query.query_index);
    return el("li", null,
      el("div", null, el("span", { class: "badge" }, query.kind), " ", el("span", { class: "text" }, query.text ?? "-"),
        query.dropped && el("span", { class: "badge" }, `not searched for: ${query.dropped.replaceAll("_", " ")}`), problemBadge(query.problem)),
      query.start_date && el("div", { class: "quiet" }, `from ${query.start_date} to ${query.end_date}`),
      ofQuery.map((lookup) => lookupPart(lookup, slot)));
  });
  return [el("h3", null, "Clues and queries, with what they found"), el("ol", { class: "queries", start: 0 }, items)];
}

function lookupsPart(lookups, slot) {
  const shown = lookups.filter((row) => row.query_index === null && (row.requested.length || row.dropped.length || row.problem || lookups.length > 1));
  const items = shown.map((row) => el("li", null, lookupPart(row, slot)));
  return items.length ? [el("h3", null, "Look-ups"), el("ol", { class: "queries", start: shown[0].turn }, items)] : null;
}

function lookupPart(row, slot) {
  const ranked = row.ranked.slice(0, 8).map((page) => `${page.page_index}${page.score === null ? "" : ` (${page.score.toFixed(2)})`}`);
  const dropped = row.dropped.map((page) => `${page.page_index} (${page.reason.replaceAll("_", " ")})`);
  return el("div", { class: "found" },
    "read ", row.used === null ? "nothing, as there was no reply" : row.used.length === 0 ? "none" : row.used.map((index) =>
      [el("a", { class: "to-page", href: linkWith({ tab: "memory", at: `${slot}${index}` }) }, String(index)), " "]),
    String(row.requested) !== String(row.used) && el("span", { class: "quiet" }, ` asked for ${row.requested.join(", ") || "none"}`),
    dropped.length > 0 && el("span", { class: "quiet" }, ` left out ${dropped.join(", ")}`),
    ranked.length > 0 && el("div", { class: "quiet" }, `ranking: ${ranked.join(", ")}${row.ranked.length > 8 ? " …" : ""}`),
    problemBadge(row.problem), row.detail && el("span", { class: "quiet text" }, ` ${row.detail}`));
}

function walkPart(visits, nodes, pages, evidence) {
  if (!visits.length) return null;
  const steps = visits.map((visit) => {
    const node = nodes.find((one) => one.node_index === visit.node_index);
    const page = pages.find((one) => one.page_index === visit.page_index);
    const isMove = visit.action === "enter" || visit.action === "revert";
    const action = isMove ? `${visit.action} → node ${visit.to_node ?? "-"}` : visit.action ?? "no action";
    const step = el("li", { class: visit.action === "answer" ? "step last" : "step" },
      el("div", null, el("b", null, `${visit.turn}. node ${visit.node_index ?? "-"}`),
        el("span", { class: "quiet" }, visit.page_index === null ? "" : ` segment ${visit.page_index}`),
        " ", el("span", { class: "badge" }, action),
        node && holdsAny(node, evidence) && el("span", { class: "badge evidence" }, "evidence below"),
        problemBadge(visit.problem)),
      passedOver(visit, node, nodes, evidence),
      visit.reason && el("div", { class: "text" }, visit.reason),
      el("div", { class: "quiet" }, facts(
        visit.chosen_by === "rule" && "the only legal action, no call",
        visit.num_invalid > 0 && plural(visit.num_invalid, "reply").replace("replys", "replies") + " without a legal action",
        visit.rejected.length > 0 && `could not go back to ${visit.rejected.join(", ")}`,
        visit.num_memory_words > 0 && `${number(visit.num_memory_words)} words of working memory${visit.is_memory_cut ? ", cut" : ""}`)),
      (page || node) && folded(page ? "the segment's text" : "the node's summary",
        () => el("div", { class: "text" }, (page ? page.text : node.summary) ?? "-")));
    step.style.marginInlineStart = `${Math.min(visit.depth, 12) * 1.2}em`;
    return step;
  });
  return [el("h3", null, "Walk"), el("p", { class: "quiet" }, walkFacts(visits, nodes, evidence)), el("ol", { class: "walk" }, steps)];
}

function passedOver(visit, node, nodes, evidence) {
  const left = (node?.children ?? []).filter((index) => index !== visit.to_node);
  if (visit.action !== "enter" || !left.length) return null;
  return el("div", { class: "quiet" }, "passed over: ", left.map((index, place) => {
    const child = nodes.find((one) => one.node_index === index);
    const isGold = child && holdsAny(child, evidence);
    return [place > 0 && ", ", `node ${index}`, isGold && [" ", el("span", { class: "badge evidence" }, "evidence")]];
  }));
}

// Where the evidence was, and the first turn away from it.
function walkFacts(visits, nodes, evidence) {
  const visited = new Set(visits.map((visit) => visit.node_index));
  const leaves = nodes.filter((node) => !node.children.length);
  const gold = leaves.filter((node) => holdsAny(node, evidence));
  const lost = visits.find((visit) => {
    const here = nodes.find((node) => node.node_index === visit.node_index);
    const next = nodes.find((node) => node.node_index === visit.to_node);
    return here && next && holdsAny(here, evidence) && !holdsAny(next, evidence);
  });
  return facts(
    `${plural(visited.size, "node")} visited of ${number(nodes.length)}`,
    gold.length > 0 && `evidence in ${plural(gold.length, "leaf").replace("leafs", "leaves")}, ${number(gold.filter((node) => visited.has(node.node_index)).length)} visited`,
    lost && `left the evidence at visit ${lost.turn}, from node ${lost.node_index} to ${lost.to_node}`);
}
