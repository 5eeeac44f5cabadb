// Small pictures in SVG, as the papers have them.
const WIDTH = 460, HEIGHT = 260, LEFT = 46, RIGHT = 12, TOP = 10, BOTTOM = 40;

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

// Round numbers that lie within [low, high], some five of them.
function ticks(low, high) {
  const rough = (high - low || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((times) => times * power >= rough) * power;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(count, 0) }, (_, index) => Number(((first + index) * step).toPrecision(10)));
}

function axes(x, y, lowX, highX, lowY, highY, labelX, labelY) {
  const bottom = HEIGHT - BOTTOM;
  return [
    ticks(lowY, highY).map((value) => [
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, class: "end" }, number(value)),
    ]),
    ticks(lowX, highX).map((value) => svg("text", { x: x(value), y: bottom + 16, class: "middle" }, number(value))),
    svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: bottom, y2: bottom, class: "axis" }),
    svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, class: "middle" }, labelX),
    svg("text", { x: 12, y: HEIGHT / 2, class: "middle", transform: `rotate(-90 12 ${HEIGHT / 2})` }, labelY),
  ];
}

function picture(title, ...parts) {
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, parts);
  return el("figure", null, el("figcaption", null, title), drawn);
}

// A picture that comes as SVG. Nothing in it can run: the page's policy allows no script within.
function drawn(title, text) {
  const made = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return el("figure", { class: "drawn" }, el("figcaption", null, title), el("div", { class: "scroll" }, document.importNode(made, true)));
}

function histogram(title, counts, edges, labelX, labelY) {
  if (counts.length === 1) return el("figure", null, el("figcaption", null, title), el("p", null, `${number((edges[0] + edges[1]) / 2)} in all ${counts[0]} ${labelY}`));
  const highY = Math.max(...counts, 1);
  const x = scale(edges[0], edges.at(-1), LEFT, WIDTH - RIGHT);
  const y = scale(0, highY, HEIGHT - BOTTOM, TOP);
  const bars = counts.map((count, index) => {
    const width = Math.max(x(edges[index + 1]) - x(edges[index]) - 1, 1);
    const told = svg("title", null, `${number(edges[index])} to ${number(edges[index + 1])}: ${count}`);
    return svg("rect", { x: x(edges[index]), y: y(count), width, height: y(0) - y(count), class: "bar" }, told);
  });
  return picture(title, axes(x, y, edges[0], edges.at(-1), 0, highY, labelX, labelY), bars);
}

// Points {name, x, y, low, high}, numbered as in the list below them; low and high may be null. Points
// that cover each other share the place of their numbers.
function scatter(title, points, labelX, labelY) {
  const xs = points.map((point) => point.x);
  const ys = points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]);
  const [lowX, highX] = widened(xs), [lowY, highY] = widened(ys);
  const x = scale(lowX, highX, LEFT, WIDTH - RIGHT), y = scale(lowY, highY, HEIGHT - BOTTOM, TOP);
  const isNear = (one, other) => Math.hypot(x(one.x) - x(other.x), y(one.y) - y(other.y)) < 12;
  const drawn = points.map((point, index) => {
    const near = points.flatMap((other, place) => (isNear(point, other) ? [place] : []));
    return svg("g", { class: `point tone-${index % 8}` },
      svg("title", null, `${point.name}: ${number(point.x)}, ${number(point.y)}`),
      point.low !== null && svg("line", { x1: x(point.x), x2: x(point.x), y1: y(point.low), y2: y(point.high) }),
      svg("circle", { cx: x(point.x), cy: y(point.y), r: 5 }),
      near[0] === index && numbersOf(near, x(point.x), y(point.y)));
  });
  const made = picture(title, axes(x, y, lowX, highX, lowY, highY, labelX, labelY), drawn);
  made.append(el("ol", { class: "legend" }, points.map((point) => el("li", null, methodName(point.name)))));
  return made;
}

// Beside a point, on the side that has room.
function numbersOf(places, x, y) {
  const isLeft = x > WIDTH * 0.7;
  return svg("text", { x: isLeft ? x - 8 : x + 8, y: y + 4, class: isLeft ? "end" : null }, places.map((place) => place + 1).join(", "));
}

function widened(values) {
  const low = Math.min(...values), high = Math.max(...values), more = (high - low || 2) * 0.08;
  return [Math.max(low - more, Math.min(low, 0)), high + more];
}

// How many questions took how many look-ups: a line per method, darker for more questions.
function strips(title, values, headingX) {
  const methods = Object.keys(values).filter((method) => values[method].some((value) => value !== null));
  const columns = [...new Set(methods.flatMap((method) => values[method]).filter((value) => value !== null).map(Math.round))].sort((a, b) => a - b);
  const rows = methods.map((method) => {
    const known = values[method].filter((value) => value !== null);
    return [el("span", null, methodName(method)), ...columns.map((column) => {
      const count = known.filter((value) => Math.round(value) === column).length;
      const shade = Math.ceil((count / known.length) * 5);
      return { shown: el("span", { class: `strip shade-${shade}` }, count ? number(count) : ""), order: count };
    })];
  });
  return el("figure", { class: "wide" }, el("figcaption", null, title), table([headingX, ...columns.map(String)], rows));
}
