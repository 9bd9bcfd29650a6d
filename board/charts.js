// Charts over time. A step without a known minute is a gap, never zero.

import { get } from "/board/ask.js";
import { button, h, line, section, svg } from "/board/draw.js";
import { plain } from "/board/words.js";

const MINUTE = 60000;
/** A minute is stored this soon after it is over. */
const STORED_MS = 2000;
const SPANS = [
  { name: "15 min", minutes: 15, step: 1 },
  { name: "1 h", minutes: 60, step: 1 },
  { name: "1 day", minutes: 1440, step: 10 },
  { name: "7 days", minutes: 10080, step: 60 },
];
const HOUR = SPANS[1];
/** Where steps are as long as this, moments have their day. */
const LONG = 60 * MINUTE;

/** Colours that tell reasons apart; the last is for all others. */
const COLOURS = 8;
const TENANTS = 12;
/** The size of a chart in its own units. */
const [WIDTH, HEIGHT] = [720, 160];

const shown = { span: HOUR, minute: 0, seen: null };
/** Names keep their colours for as long as the page is open. */
const colours = new Map();

/** The series of the span that is shown, asked again once another minute is stored. */
export async function load(now) {
  const minute = Math.floor((now - STORED_MS) / MINUTE);
  if (shown.seen?.span === shown.span && shown.minute === minute) return shown.seen;
  const { span } = shown;
  const end = minute * MINUTE;
  const ask = ({ minutes, step }, by) =>
    get(`/v1/series?from=${end - minutes * MINUTE}&to=${end}&step=${step}m&by=${by}`);
  const [reasons, tenants] = await Promise.all([ask(span, "reason"), ask(span, "tenant")]);
  const hour = span === HOUR ? reasons : await ask(HOUR, "reason");
  shown.seen = { span, reasons, tenants, hour };
  shown.minute = minute;
  return shown.seen;
}

export const acts = {
  span: (node) => {
    shown.span = SPANS.find((span) => span.name === node.dataset.span);
    return "";
  },
};

/** Waiting jobs of the last hour, and now. */
export const queue = ({ hour }, now) =>
  line([...hour.total.queued, now], "waiting jobs in the last hour");

export function view(seen) {
  return [
    h(
      "div",
      { class: "acts spans", role: "group", "aria-label": "Span of the charts", key: "spans" },
      SPANS.map((span) =>
        button(span.name, "span", {
          class: "quiet small",
          "data-span": span.name,
          "aria-pressed": span === shown.span ? "true" : "false",
        }),
      ),
    ),
    section("Waiting jobs by reason", waiting(seen)),
    section("Slots in use and slots due, by tenant", shares(seen)),
  ];
}

const isKnown = (n) => n !== null && n !== undefined;
const last = (numbers) => plain(numbers.at(-1));
const sum = (numbers) => numbers.reduce((all, n) => all + (n ?? 0), 0);
const NOTHING = "No minute of this span is stored. The first is stored when a minute is over.";

function waiting({ span, reasons }) {
  const { total } = reasons;
  if (!total.queued.some(isKnown)) return h("p", { class: "empty", key: "none" }, NOTHING);
  const layers = stacked(reasons.series);
  const top = ceiling(Math.max(...total.queued.map((n) => n ?? 0)));
  const said = layers.map(({ name, queued }) => `${name} ${last(queued)}`).join(", ");
  const label = `Waiting jobs by reason, last ${span.name}: ${said || "no job waits"}`;
  return h(
    "figure",
    { class: "panel chart", key: "waiting" },
    frame(reasons, top, picture(label, [
      gaps(total.queued),
      areas(layers, top),
      total.queued.map((n, at) => tip(total.queued, at, words(reasons, layers, at))),
    ])),
    legend([
      ...layers.map(({ name, colour, queued }) => [`fill-${colour}`, name, last(queued)]),
      ["gap", "unknown", ""],
    ]),
  );
}

/** The largest reasons with a colour each, and the rest as one. */
function stacked(series) {
  const sizes = new Map(series.map((one) => [one, sum(one.queued)]));
  const sorted = [...series].sort((one, other) => sizes.get(other) - sizes.get(one));
  const large = new Set(sorted.slice(0, COLOURS - 1));
  const named = series.filter((one) => large.has(one));
  const layers = named.map(({ name, queued }) => ({ name, queued, colour: colourOf(name, named) }));
  const rest = sorted.slice(COLOURS - 1);
  if (rest.length > 0) {
    const all = rest[0].queued.map((n, at) =>
      isKnown(n) ? rest.reduce((more, one) => more + one.queued[at], 0) : null,
    );
    layers.push({ name: "other reasons", queued: all, colour: COLOURS - 1 });
  }
  return layers;
}

function colourOf(name, others) {
  if (!colours.has(name)) {
    const taken = new Set(others.map((one) => colours.get(one.name)));
    const all = Array.from({ length: COLOURS - 1 }, (_, at) => at);
    colours.set(name, all.find((at) => !taken.has(at)) ?? 0);
  }
  return colours.get(name);
}

function words({ from_ms: from, step_ms: step, total }, layers, at) {
  const when = clock(from + at * step, step);
  if (!isKnown(total.queued[at])) return `${when}: unknown`;
  const parts = layers.filter(({ queued }) => queued[at] > 0);
  const said = parts.map(({ name, queued }) => `${name} ${plain(queued[at])}`);
  return `${when}: ${plain(total.queued[at])} wait${said.length ? `, ${said.join(", ")}` : ""}`;
}

function shares({ span, tenants }) {
  const { series, total } = tenants;
  if (!total.queued.some(isKnown)) return h("p", { class: "empty", key: "none" }, NOTHING);
  const active = series.filter(({ slots, due }) => sum(slots) + sum(due) > 0);
  if (active.length === 0) {
    return h("p", { class: "empty", key: "idle" }, "No tenant used a slot or was due one.");
  }
  const drawn = active.slice(0, TENANTS);
  const top = ceiling(Math.max(...drawn.flatMap(({ slots, due }) => [...slots, ...due])));
  const more = active.length - drawn.length;
  return [
    legend([
      ["area", "slots in use", ""],
      ["due", "slots due while the tenant competes", ""],
      ["gap", "unknown", ""],
    ]),
    h(
      "div",
      { class: "shares", key: "shares" },
      drawn.map((one) => share(one, tenants, top, span)),
    ),
    more > 0 || tenants.other
      ? h("p", { class: "soft", key: "more" }, `${more || "Some"} smaller tenants are not drawn.`)
      : null,
  ];
}

function share({ name, slots, due }, tenants, top, span) {
  const isDue = isKnown(due.at(-1));
  const now = isKnown(slots.at(-1))
    ? `last ${last(slots)} in use, ${isDue ? last(due) : "none"} due`
    : "unknown now";
  const label = `Slots of ${name}, last ${span.name}: ${now}`;
  return h(
    "figure",
    { class: "panel chart small", key: name },
    h("figcaption", {}, h("strong", {}, name), h("span", { class: "soft" }, now)),
    frame(tenants, top, picture(label, [
      gaps(slots),
      runs(slots).map((run) => svg("path", { class: "area", d: area(run, slots, null, top) })),
      runs(due).map((run) => svg("path", { class: "due", d: stairs(run, due, top, due.length) })),
    ])),
  );
}

/** A picture with the numbers and moments at its edges. */
function frame({ from_ms: from, step_ms: step, steps }, top, drawn) {
  const when = step < LONG ? clock : day;
  const at = (part) => when(from + part * steps * step, step);
  return h(
    "div",
    { class: "frame" },
    h("div", { class: "scale", "aria-hidden": "true" }, [top, top / 2, 0].map((n) => h("span", {}, plain(n)))),
    drawn,
    h("div", { class: "moments", "aria-hidden": "true" }, [0, 0.5, 1].map((part) => h("span", {}, at(part)))),
  );
}

const picture = (label, children) =>
  svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    [0, 0.5, 1].map((part) =>
      svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: part * HEIGHT, y2: part * HEIGHT }),
    ),
    children,
  );

const legend = (entries) =>
  h(
    "ul",
    { class: "legend", key: "legend" },
    entries.map(([colour, name, value]) =>
      h("li", { key: name }, h("span", { class: `swatch ${colour}` }), name, value && h("b", {}, value)),
    ),
  );

const x = (at, n) => ((at / n) * WIDTH).toFixed(1);
const y = (value, top) => (HEIGHT - (value / top) * HEIGHT).toFixed(1);

/** Where known steps begin and end, without those between that are unknown. */
function runs(numbers) {
  const all = [];
  numbers.forEach((n, at) => {
    if (!isKnown(n)) return;
    if (all.at(-1)?.end === at) all.at(-1).end = at + 1;
    else all.push({ begin: at, end: at + 1 });
  });
  return all;
}

function gaps(numbers) {
  const unknown = numbers.map((n) => (isKnown(n) ? null : 0));
  return runs(unknown).map(({ begin, end }) => {
    const [left, right] = [x(begin, numbers.length), x(end, numbers.length)];
    const width = (right - left).toFixed(1);
    return svg("rect", { class: "gap", x: left, y: 0, width, height: HEIGHT });
  });
}

/** A line of one stair a step. */
function stairs({ begin, end }, numbers, top, n) {
  const points = [`M${x(begin, n)},${y(numbers[begin], top)}`];
  for (let at = begin; at < end; at += 1) {
    points.push(`V${y(numbers[at], top)}H${x(at + 1, n)}`);
  }
  return points.join("");
}

/** What is between two lines of stairs; without a lower one, down to nothing. */
function area({ begin, end }, upper, lower, top) {
  const n = upper.length;
  const down = [];
  for (let at = end - 1; at >= begin; at -= 1) {
    down.push(`V${y(lower?.[at] ?? 0, top)}H${x(at, n)}`);
  }
  return `${stairs({ begin, end }, upper, top, n)}${down.join("")}Z`;
}

function areas(layers, top) {
  let below = null;
  return layers.map(({ name, queued, colour }) => {
    const under = below;
    const above = queued.map((n, at) => (isKnown(n) ? n + (under?.[at] ?? 0) : null));
    below = above;
    const d = runs(queued).map((run) => area(run, above, under, top)).join("");
    return svg("path", { class: `fill-${colour}`, "data-name": name, d });
  });
}

/** What a step is, for those who point at it. */
function tip(numbers, at, text) {
  const left = x(at, numbers.length);
  const width = (WIDTH / numbers.length).toFixed(1);
  const title = svg("title", {}, text);
  return svg("rect", { class: "tip", x: left, y: 0, width, height: HEIGHT }, title);
}

/** A round number that nothing exceeds, and whose half is short too. */
function ceiling(largest) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, largest)));
  return [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].map((n) => n * power).find((n) => n >= largest && n >= 2) ?? 2;
}

/** A moment by the clock, with its day where steps are long. */
function clock(ms, step) {
  const time = new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return step < LONG ? time : `${day(ms)}, ${time}`;
}

const day = (ms) => new Date(ms).toLocaleDateString([], { weekday: "short", day: "numeric" });
