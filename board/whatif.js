// What if: the last hours again, under other policies.

import { file, get, post, remove } from "/board/ask.js";
import { button, h, number, section } from "/board/draw.js";
import { count, fine, length, moment } from "/board/words.js";

export const title = "What if";

const PATH = "/v1/what-if";
const PAGE = "report.html";

/** The files of the report that is shown, by name: addresses that this page made. */
const kept = { number: 0, files: new Map() };

export async function load() {
  const [seen, site] = await Promise.all([get(PATH), get("/v1/overview")]);
  const report = seen.last?.report;
  if (report && seen.last.number !== kept.number) await fetchFiles(seen.last.number, report);
  return { ...seen, policy: site.policy };
}

async function fetchFiles(number, { pictures }) {
  const names = [...pictures.map(({ name }) => `${name}.svg`), PAGE];
  const addresses = await Promise.all(names.map((name) => file(`${PATH}/${number}/${name}`)));
  for (const address of kept.files.values()) URL.revokeObjectURL(address);
  kept.number = number;
  kept.files = new Map(names.map((name, at) => [name, addresses[at]]));
}

export function view(seen, { mayChange }) {
  return [
    h("h1", {}, "What if"),
    h(
      "p",
      { class: "lead" },
      "The jobs of the last hours once more, under other policies: what they would have waited, ",
      "and who would have had which share. Nothing here changes anything.",
    ),
    seen.why_not
      ? h("p", { class: "empty" }, seen.why_not)
      : [seen.running ? running(seen) : mayChange && form(seen)],
    ended(seen),
  ];
}

/** What policies believe about lengths, as people say it. */
const BELIEFS = {
  history: "guessed, as the scheduler does",
  perfect: "known, as if by magic",
  user: "as jobs said",
  none: "unknown",
};

function form(seen) {
  const { hours, hours_max: hoursMax, policies, policies_max: n, policy } = seen;
  const known = h(
    "datalist",
    { id: "policies" },
    policies.map((name) => h("option", { value: name })),
  );
  const first = [policies.includes(policy) ? policy : "balanced", "fifo"];
  const field = (label, name, more) =>
    h(
      "label",
      {},
      label,
      h("input", { name, type: "text", autocomplete: "off", spellcheck: "false", ...more }),
    );
  const one = (_, at) =>
    field(at === 0 ? "Policy" : `Compared with${at > 1 ? ", too" : ""}`, "policy", {
      list: "policies",
      value: first[at] ?? "",
      required: at === 0,
      placeholder: at === 0 ? 'aging, or {"preset": …}' : "",
    });
  return h(
    "form",
    { class: "form asking", "data-do": "ask", key: "form" },
    field(`Hours, up to ${hoursMax}`, "hours", {
      type: "number",
      min: 1,
      max: hoursMax,
      value: hours,
      required: true,
    }),
    field("Workers", "fleet", { placeholder: "as they were, or 10x8" }),
    h(
      "label",
      {},
      "Lengths of jobs",
      h(
        "select",
        { name: "estimates" },
        seen.estimates.map((name) => h("option", { value: name }, BELIEFS[name] ?? name)),
      ),
    ),
    Array.from({ length: n }, one),
    known,
    h(
      "p",
      { class: "soft acts" },
      h("button", { type: "submit" }, "Replay"),
      h("span", {},
      "A policy is a name, or JSON as for ",
      h("code", {}, "maitre policy"),
      ". It runs beside the scheduler, when nobody else needs the machine."),
    ),
  );
}

const asked = ({ hours, policies, fleet }) => [
  h("strong", {}, policies.join(" · ")),
  ` over the last ${hours === 1 ? "hour" : count(hours, "hour")}`,
  fleet ? ` on ${fleet}` : "",
];

function running({ running: one, now_ms: now, timeout_ms: timeout }) {
  return h(
    "div",
    { class: "panel", key: "running" },
    h("p", {}, "Replaying ", asked(one), one.who ? `, asked by ${one.who}` : ""),
    h(
      "p",
      { class: "acts" },
      h("progress", { "aria-label": "replaying" }),
      ` for ${length(now - one.since_ms)}, ${length(timeout)} at most`,
      button("Call it off", "stop", { class: "quiet" }),
    ),
  );
}

function ended({ last, running: other, why_not: whyNot }) {
  if (!last) {
    const words = "Nothing was replayed yet. The last report stays until the next, or a restart.";
    return !other && !whyNot && h("p", { class: "empty", key: "none" }, words);
  }
  if (last.error !== null) {
    return h(
      "div",
      { class: "panel", key: "error" },
      h("p", {}, "No report of ", asked(last), ": ", h("span", { class: "wrong" }, last.error)),
    );
  }
  const { notes, tables, pictures } = last.report;
  const [first, ...others] = tables;
  return [
    section(
      "Report",
      h(
        "p",
        { class: "acts" },
        h("span", {}, asked(last), `, before ${moment(last.at_ms)}; took ${fine(last.took_ms)}`),
        h("a", { href: kept.files.get(PAGE), download: `what-if-${last.number}.html` }, "Save it"),
      ),
      notes.map((note) => h("p", { class: "soft prose" }, note)),
    ),
    figures(first),
    h("div", { class: "pictures", key: "pictures" }, pictures.map(picture)),
    others.map(figures),
  ];
}

/** A table of which the first cells are words. */
function figures({ title: name, header, rows }) {
  const nWords = header[1] === "jobs of" ? 2 : 1;
  const cell = (text, at) => {
    const made = at < nWords ? h("td", {}, text) : number(text);
    made.dataset.label = header[at];
    return made;
  };
  return section(
    name,
    h(
      "div",
      { class: "wide figures" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            header.map((head, at) =>
              h("th", { scope: "col", class: at < nWords ? null : "number" }, head),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) => h("tr", {}, row.map(cell))),
        ),
      ),
    ),
  );
}

const picture = ({ name, title: words, note }) =>
  h(
    "figure",
    { class: "panel", key: `${kept.number}-${name}` },
    h("h2", {}, words),
    h("img", { src: kept.files.get(`${name}.svg`), alt: words, width: 960, height: 380 }),
    h("figcaption", { class: "soft" }, note),
  );

export const acts = {
  ask: async (node) => {
    const fields = new FormData(node);
    const policies = fields.getAll("policy").map((text) => text.trim());
    const fleet = fields.get("fleet").trim();
    await post(PATH, {
      hours: Number(fields.get("hours")),
      policies: policies.filter(Boolean),
      estimates: fields.get("estimates"),
      ...(fleet && { fleet }),
    });
    return "";
  },
  stop: async () => {
    const { was_running: wasRunning } = await remove(PATH);
    return wasRunning ? "the replay is called off" : "nothing is replayed";
  },
};
