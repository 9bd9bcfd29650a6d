// Who did what, when and why.

import { get } from "/board/ask.js";
import { button, chip, h, table, time } from "/board/draw.js";

const KINDS = [
  "detection",
  "group",
  "setting",
  "descriptor",
  "stale",
  "lane",
  "schedule",
  "context",
];
const PAGE = 50;

export const title = "Activity";

/** What is looked at: a kind, and where the page begins; from the newest if nowhere. */
const look = { kind: "", before: 0 };

export function load() {
  const kind = look.kind ? `&kind=${look.kind}` : "";
  return get(`/v1/activity?page_size=${PAGE}&before=${look.before}${kind}`);
}

export function view({ entries, next_before: next, now_ms: now }) {
  const rows = entries.map((one) => ({
    key: one.number,
    cells: [
      time(one.at_ms, now),
      chip(one.kind, "plain"),
      one.who,
      one.about,
      one.what,
      h("td", { class: "soft" }, one.why),
    ],
  }));
  const option = (kind) =>
    h("option", { value: kind, selected: kind === look.kind }, kind || "every kind");
  return [
    h("h1", {}, "Activity"),
    h(
      "p",
      { class: "acts" },
      h("label", {}, "Show ", h("select", { "data-do": "kind" }, ["", ...KINDS].map(option))),
      look.before > 0 && button("Newest", "newest", { class: "quiet" }),
      next > 0 && button("Older", "older", { class: "quiet", "data-before": next }),
    ),
    table(
      ["when", "kind", "who", "about", "what", "why"],
      rows,
      "Nothing has happened yet. Changes of settings, detections and schedules are written here.",
    ),
  ];
}

export const acts = {
  kind: (node) => {
    Object.assign(look, { kind: node.value, before: 0 });
  },
  older: (node) => {
    look.before = Number(node.dataset.before);
  },
  newest: () => {
    look.before = 0;
  },
};
