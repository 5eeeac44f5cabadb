// The reading map: the document from left to right, the gold evidence as a band across all lanes, a
// lane per method with the raw text that its context held. Lanes come as SVG, as notebooks show them.
function readingMap(run, document, question, attempts, chosen, measure) {
  const memories = [...new Set([chosen.a?.memory, chosen.b?.memory])].filter((name) => name in document.page_lanes);
  const map = scrolling("section", "map", "Reading map", { class: "map" },
    el("h3", { class: "hidden" }, "Reading map"),
    el("div", { class: "lane-row axis" },
      el("span", { class: "quiet" }, `${number(document.num_words)} words`),
      el("span", { class: "lane-head quiet" }, measure && headingOf(run, measure)),
      el("span", { class: "axis-ends quiet" },
        el("span", null, "start"),
        el("span", null, question.evidence.length
          ? el("span", { class: "gold-key" }, plural(question.evidence.length, "gold passage"))
          : "no gold evidence"),
        el("span", null, "end")),
      el("span", { class: "quiet" }, question.evidence.length ? "gold read" : "read")),
    attempts.map((one) => laneRow(run, document, question, one, chosen, measure)),
    memories.map((name) => pagesRow(document, question, name, chosen)));
  map.style.setProperty("--name", Math.max(...attempts.map((one) => one.name.length)));
  return map;
}

function laneRow(run, document, question, one, chosen, measure) {
  const result = resultOf(one, question, measure);
  const slot = (name, other, address) => el("a", {
    class: "slot", id: `slot-${name}-${one.key}`, href: linkWith(address),
    "aria-current": chosen[name] === one ? "true" : null,
    "aria-label": `${one.name} as ${name.toUpperCase()}, ${other}`,
  }, name.toUpperCase());
  const isShown = chosen.a === one || chosen.b === one;
  const toCharacter = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    if (event.detail === 0 || !box.width) return; // by the keyboard
    event.preventDefault();
    location.hash = toPage(document, one, ((event.clientX - box.left) / box.width) * document.num_chars);
  };
  return el("div", { class: `lane-row ${toneOf(run, one.method)}${isShown ? " shown" : ""}` },
    el("span", { class: "lane-name" },
      slot("a", "on the left", { ...one.address, at: null }),
      slot("b", "on the right", { with: chosen.b === one ? "none" : one.method, with_repeat: one.address.repeat, at: null }),
      el("a", { class: "name", id: `lane-${one.key}`, href: linkWith({ ...one.address, at: null }), title: one.method }, one.name)),
    el("span", { class: "lane-result" }, resultBadge(result), result.score === null ? null : el("span", { class: "value" }, shortNumber(result.score)),
      one.problems.length > 0 && result.kind !== "bad" && el("span", { class: "badge bad", title: one.problems.join(", ") },
        "!", el("span", { class: "hidden" }, one.problems.join(", ")))),
    el("a", {
      class: "lane-picture", href: toPage(document, one, question.evidence[0]?.start_char ?? 0),
      tabindex: -1, "aria-label": `what ${one.name} read`, click: toCharacter,
    }, one.lane ? imported(one.lane.svg) : el("span", { class: "quiet" }, "no answer")),
    el("span", { class: "lane-seen value" }, one.lane && `${number(one.lane.gold ?? one.lane.read)}%`));
}

function toPage(document, one, position) {
  const pages = pagesOf(document, one.memory);
  const page = pages.findLast((row) => row.start_char <= position);
  const isB = here().with === one.method;
  return linkWith({ ...(isB ? {} : one.address), tab: "memory", at: page ? `${isB ? "b" : "a"}${page.page_index}` : null });
}

// The pages of a memory; of a method without one those of the first that has any.
function pagesOf(document, memory) {
  const all = document.sections.filter((section) => section.table === "pages");
  const ofMemory = all.filter((section) => section.memory === memory);
  return (ofMemory.length ? ofMemory : all.slice(0, 1)).flatMap((section) => section.rows);
}

function pagesRow(document, question, memory, chosen) {
  const slot = chosen.a?.memory === memory ? "a" : "b";
  const pages = imported(document.page_lanes[memory]);
  pages.addEventListener("click", (event) => {
    const page = event.target.dataset?.page;
    if (page !== undefined) location.hash = linkWith({ tab: "memory", at: slot + page });
  });
  return el("div", { class: "lane-row pages-row" },
    el("span", { class: "lane-name quiet", title: memory }, "pages of ", memory),
    el("span", { class: "lane-result quiet" }, number(pages.childElementCount)),
    el("span", { class: "lane-picture" }, pages), el("span"));
}

function holdsAny(place, spans) {
  return spans.some((span) => span.start_char < place.end_char && span.end_char > place.start_char);
}
