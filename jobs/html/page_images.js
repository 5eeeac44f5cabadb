// Pages of a PDF as images beside the text that was read from them, drawn when they come into sight.
// A page in one file has none.
function pageImages(document, place) {
  const indexes = pdfPages(document, place);
  return indexes.length > 0 && el("div", { class: "page-images" }, indexes.map((index) => pageImage(document, index)));
}

// The indexes of the pages that a span of the text begins on, and goes on over.
function pdfPages(document, { start_char: start, end_char: end }) {
  const starts = window.document.body.dataset.served ? JSON.parse(document.metadata).page_starts : null;
  if (!Array.isArray(starts)) return [];
  const first = Math.max(0, starts.findLastIndex((one) => one <= start));
  return starts.map((_, index) => index).filter((index) => index >= first && starts[index] < end);
}

function pageImage(document, index) {
  const caption = `Page ${index + 1} of the PDF`;
  const frame = el("div", { class: "page-image" });
  whenSeen(frame, async () => {
    const { image, why } = await imageOrWhy(`image-${document.number}-${index}`);
    frame.replaceChildren(image
      ? el("img", { src: `data:image/jpeg;base64,${image}`, alt: `${caption} ${document.title || document.document_id}; its text stands beside it` })
      : el("p", { class: "quiet" }, why));
    frame.classList.add("is-drawn");
  });
  return el("figure", null, frame, el("figcaption", { class: "quiet" }, caption));
}

async function imageOrWhy(name) {
  if (window.document.body.dataset.served === "view") return read(name).catch((error) => ({ why: String(error.message) }));
  return read(name).catch(() => ({ why: "This page is not among the images of the bundle." }));
}

function whenSeen(element, make) {
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    make();
  });
  watcher.observe(element);
}
