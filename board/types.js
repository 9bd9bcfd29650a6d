// All types of jobs.

import { get, part } from "/board/ask.js";
import { h, number, table } from "/board/draw.js";
import { fine } from "/board/words.js";

export const title = "Types";

export const load = () => get("/v1/types");

export function view({ types }) {
  const rows = types.map((one) => ({
    key: one.type,
    cells: [
      h("a", { href: `#/types/${part(one.type)}` }, one.type),
      number(one.queued),
      number(one.running),
      number(one.blocked),
      number(one.workers),
      number(one.duration_ms === null ? "–" : fine(one.duration_ms)),
    ],
  }));
  return [
    h("h1", {}, "Types"),
    h(
      "p",
      { class: "lead" },
      "What kinds of jobs there are. Some are submitted; others are found ",
      "by workers that look for them.",
    ),
    table(
      ["type", "waiting", "running", "blocked", "workers", "usually takes"],
      rows,
      "No type is known yet. A worker that comes, or a job, makes its type known; " +
        "examples/janitor has workers that find their own work.",
    ),
  ];
}
