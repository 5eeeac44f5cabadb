// A document's memory: its gists, with pages opened in place, and what else was made of it.
const DRAWN = ["pages", "gists", "nodes"];

// `seen`: {slot, read: Set of page indexes, evidence: spans, words: Set, isBeside: pages beside all gists}.
function memoryPart(document, name, seen) {
  const sections = document.sections.filter((section) => section.memory === name);
  const rows = (table) => sections.filter((section) => section.table === table).flatMap((section) => section.rows);
  const gists = new Map(rows("gists").map((row) => [row.page_index, row]));
  const pages = rows("pages");
  const calls = document.calls.filter((call) => call.memory === name);
  const ofPages = new Set(pages.map((page) => page.page_index));
  return [
    pages.length > 0 && el("div", { class: "pages" }, pages.map((page) => pagePart(page, gists.get(page.page_index), calls, seen))),
    sections.filter((section) => section.table === "nodes").map((section) =>
      folded(`Tree of ${plural(section.rows.length, "node")}`,
        () => el("ul", { class: "tree" }, treeNodes(section.rows, null)))),
    sections.filter((section) => !DRAWN.includes(section.table)).map(linesPart),
    callList(calls.filter((call) => !ofPages.has(call.page_index)), "Other calls that made this memory"),
  ];
}

function pagePart(page, gist, calls, seen) {
  const text = page.text ?? "";
  const evidence = within(text, page.start_char, seen.evidence);
  const wasRead = seen.read.has(page.page_index);
  const body = el("div", { class: "texts" });
  const whole = () => el("div", { class: "text page-text" }, marked(text, evidence, seen.words));
  const short = () => el("div", { class: "text gist-text" },
    gist ? marked(gist.gist ?? "-", [], seen.words) : text.slice(0, 200) + (text.length > 200 ? " …" : ""));
  let isOpen = wasRead;
  const show = () => {
    body.replaceChildren(...(seen.isBeside ? [short(), whole()] : [isOpen ? whole() : short()]));
    toggle.textContent = isOpen ? (gist ? "show the gist" : "close the page") : "open the page";
  };
  const toggle = el("button", { type: "button", click: () => { isOpen = !isOpen; show(); } });
  show();
  const ofPage = calls.filter((call) => call.page_index === page.page_index);
  return el("section", { class: wasRead ? "page read" : "page", id: `${seen.slot}-page-${page.page_index}` }, // which an address names as at=a3
    el("div", { class: "page-head" },
      el("b", null, `Page ${page.page_index}`),
      el("span", { class: "quiet" }, facts(
        gist ? `${number(page.num_words)} → ${number(gist.num_words)} words` : `${number(page.num_words)} words`,
        page.chosen_by === "fallback" && "ended by a fallback")),
      wasRead && el("span", { class: "badge read" }, "read"),
      evidence.length > 0 && el("span", { class: "badge evidence" }, wasRead || seen.isBeside ? "gold evidence" : "gold evidence, not read"),
      problemBadge(page.problem ?? gist?.problem),
      !seen.isBeside && toggle),
    body,
    ofPage.length > 0 && folded(`${plural(ofPage.length, "call")} that made it`, () => ofPage.map(callPart)));
}

function treeNodes(nodes, parent) {
  const children = nodes.filter((node) => node.parent === parent).sort((a, b) => a.start_char - b.start_char);
  return children.map((node) => el("li", null, el("b", null, `Node ${node.node_index} `),
    el("span", { class: "quiet" }, node.page_index === null ? "" : `of segment ${node.page_index} `), problemBadge(node.problem),
    el("span", { class: "text" }, node.summary ?? "-"), el("ul", null, treeNodes(nodes, node.node_index))));
}

// The rows of a table that the page knows nothing of, as `gistmill trace` has them.
function linesPart(section) {
  const lines = section.lines ?? section.rows.map((row) => JSON.stringify(row));
  if (!lines.length) return null;
  const shown = lines.map((line) => (typeof line === "string" ? line : `${line.lead}${line.text}`));
  return folded(`${section.stage}: ${plural(lines.length, "line")} of ${section.table}`, () => el("pre", null, shown.join("\n")));
}
