// The chunks of the run: in this file, or where it is served from. Each is read when it is needed,
// and the last few are kept.
const KEPT = 12;
const chunks = new Map();

function load(name) {
  const chunk = chunks.get(name) ?? read(name);
  chunks.delete(name);
  chunks.set(name, chunk);
  if (chunks.size > KEPT) chunks.delete(chunks.keys().next().value);
  chunk.catch(() => chunks.get(name) === chunk && chunks.delete(name)); // so that it is asked for again
  return chunk;
}

async function read(name) {
  const { content, lines } = document.body.dataset.served ? await fetched(name) : await embedded(name);
  return lines ? unpacked(content, lines) : content;
}

async function fetched(name) {
  const reply = await fetch(`${name === "runs" ? document.body.dataset.root : ""}data/${name}`);
  if (reply.status === 500) throw new Error(await reply.text());
  if (!reply.ok) throw new Error(`data/${name}: ${reply.status}; open the address that gistmill view printed last`);
  return reply.json();
}

async function embedded(name) {
  if (document.readyState === "loading" && !document.getElementById(`data-${name}`)) {
    await new Promise((done) => document.addEventListener("DOMContentLoaded", done));
  }
  const element = document.getElementById(`data-${name}`);
  if (element === null) throw new Error(`${name}: not in this file, which may have been cut off`);
  const text = atob(JSON.parse(element.textContent));
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

// A long text stands as the numbers of its lines, each of which a chunk has once.
function unpacked(value, lines) {
  if (Array.isArray(value)) return value.map((inner) => unpacked(inner, lines));
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.$)) return value.$.map((line) => lines[line]).join("\n");
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, unpacked(inner, lines)]));
}
