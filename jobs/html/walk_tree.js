// A walk as its tree: the document from left to right, as in the reading map, a row per level from
// the root down; nodes that were visited are filled and numbered in order, the others were passed
// over, and the gold evidence is a band through all rows.
const LEVEL = 24; // px

function walkTree(visits, nodes, evidence, length) {
  if (!nodes.length || !visits.length) return null;
  const depths = depthsOf(nodes);
  const turns = new Map();
  for (const visit of visits) turns.set(visit.node_index, [...(turns.get(visit.node_index) ?? []), visit.turn]);
  const height = LEVEL * (Math.max(...depths.values()) + 1);
  const at = (position) => `${((100 * position) / Math.max(length, 1)).toFixed(3)}%`;
  const wide = (span) => ({ x: at(span.start_char), width: at(Math.max(span.end_char - span.start_char, length / 400)) });
  const told = toldOf(visits, nodes, evidence);
  return el("figure", { class: "walk-tree" },
    svg("svg", { width: "100%", height, role: "img", "aria-label": told },
      nodes.map((node) => nodeMark(node, depths.get(node.node_index), turns.get(node.node_index), at, wide(node))),
      evidence.map((span) => svg("rect", { class: "gold", y: 0, height, ...wide(span) }))),
    el("figcaption", { class: "quiet" }, told));
}

function nodeMark(node, depth, turns, at, place) {
  const y = depth * LEVEL + 2;
  const shown = turns ? turns.join(", ") : "";
  return svg("g", { class: turns ? "visited" : "passed", "data-node": node.node_index },
    svg("title", null, `node ${node.node_index}${turns ? `, visit ${shown}` : ", passed over"}: ${(node.summary ?? "").slice(0, 300)}`),
    svg("rect", { y, height: LEVEL - 4, rx: 2, ...place }),
    turns && svg("text", { x: at((node.start_char + node.end_char) / 2), y: y + 14, class: "middle" }, shown));
}

function depthsOf(nodes) {
  const parents = new Map(nodes.map((node) => [node.node_index, node.parent]));
  const depth = (index) => (parents.get(index) === null || !parents.has(index) ? 0 : 1 + depth(parents.get(index)));
  return new Map(nodes.map((node) => [node.node_index, depth(node.node_index)]));
}

// The picture in words: where the evidence was, and the first turn away from it.
function toldOf(visits, nodes, evidence) {
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
