// Texts with gold evidence and the words of an answer marked.
const WORD = /[\p{L}\p{N}]+/gu;

// Spans of a document's characters, as rows have them, within a text that begins at `start`: pairs of
// positions in the text as JavaScript counts them, where some characters count twice.
function within(text, start, spans) {
  const characters = Array.from(text);
  const end = start + characters.length;
  const units = (position) => characters.slice(0, position).join("").length;
  return spans
    .filter((span) => span.start_char < end && span.end_char > start)
    .map((span) => [units(Math.max(span.start_char - start, 0)), units(Math.min(span.end_char, end) - start)]);
}

// The words of an answer that are rare in the document, in lower case: of thousands of words, one in
// five thousand at most. Others are everywhere, and say nothing of where an answer came from.
function rareWords(answer, pages) {
  const wanted = new Map(((answer ?? "").toLowerCase().match(WORD) ?? []).map((word) => [word, 0]));
  let total = 0;
  for (const { text } of pages) {
    for (const word of (text ?? "").toLowerCase().match(WORD) ?? []) {
      total++;
      if (wanted.has(word)) wanted.set(word, wanted.get(word) + 1);
    }
  }
  const most = Math.max(3, total / 5000);
  return new Set([...wanted].filter(([word, count]) => word.length > 2 && count > 0 && count <= most).map(([word]) => word));
}

function marked(text, evidence, words) {
  const cuts = new Set([0, text.length, ...evidence.flat()]);
  const spoken = [...text.matchAll(WORD)].filter((match) => words.has(match[0].toLowerCase())).map((match) => [match.index, match.index + match[0].length]);
  for (const position of spoken.flat()) cuts.add(position);
  const sorted = [...cuts].sort((a, b) => a - b);
  let next = 0;
  return sorted.slice(0, -1).map((from, index) => {
    while (next < spoken.length && spoken[next][1] <= from) next++;
    const isWord = next < spoken.length && spoken[next][0] <= from;
    const isEvidence = evidence.some(([start, end]) => start <= from && from < end);
    const piece = text.slice(from, sorted[index + 1]);
    if (!isWord && !isEvidence) return piece;
    return el("mark", { class: facts(isEvidence && "evidence", isWord && "word").replace(" · ", " ") }, piece);
  });
}
