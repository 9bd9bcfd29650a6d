// One job: where it is, why, and what became of its attempts.

import { get, part } from "/board/ask.js";
import { chip, h, number, section, table, time } from "/board/draw.js";
import { count, fine, length } from "/board/words.js";
import { progress } from "/board/overview.js";

export const title = "Job";

export const load = (id) => get(`/v1/jobs/${part(id)}`);

export function view(job) {
  const now = job.now_ms;
  return [
    h("h1", {}, `Job ${job.id} `, chip(job.state), job.on_hold ? chip("on hold", "queued") : ""),
    h(
      "p",
      { class: "lead" },
      `${job.type} of ${job.tenant}, submitted `,
      time(job.created_ms, now),
    ),
    section("Why", h("div", { class: "panel", key: "why" }, why(job))),
    section("Particulars", particulars(job)),
    section("Attempts that ended", attempts(job, now)),
  ];
}

function why(job) {
  const { reason, detail, ahead, why_there, checks, nearest } = job.why;
  const lines = [];
  if (reason) lines.push(h("p", { key: "reason" }, chip(reason, "queued"), ` ${detail}`));
  else if (detail) lines.push(h("p", { key: "because" }, detail));
  const others = checks.slice(1).filter((check) => !detail.includes(check.detail));
  for (const check of others) {
    lines.push(h("p", { key: check.code }, "also ", chip(check.code, "queued"), ` ${check.detail}`));
  }
  const lacking = nearest.filter((near) => reason !== "workers-full" && near.lacks.length);
  for (const near of lacking) {
    const text = `nearest worker ${near.worker}: ${near.lacks.join("; ")}`;
    lines.push(h("p", { key: `near ${near.worker}` }, text));
  }
  if (ahead !== null) lines.push(h("p", { key: "ahead" }, `${count(ahead, "job")} before it`));
  const start = starts(job.why);
  if (start) lines.push(h("p", { key: "start" }, start));
  if (why_there) lines.push(h("p", { key: "there" }, why_there));
  if (job.error) lines.push(h("p", { key: "error" }, job.error));
  const is_live = job.state === "running" || job.state === "claimed";
  if (is_live) lines.push(h("p", { key: "progress" }, progress(job)));
  return lines.length
    ? lines
    : h("p", { class: "soft", key: "empty" }, "There is nothing to explain.");
}

function starts({ starts_in_ms, starts_in_min_ms, starts_in_max_ms, estimate_basis }) {
  if (starts_in_ms === null) return "";
  const [min, max] = [starts_in_min_ms, starts_in_max_ms];
  const when = max === null ? `about ${length(starts_in_ms)}` : `${length(min)} to ${length(max)}`;
  return `starts in ${when} (${estimate_basis})`;
}

function particulars(job) {
  const labels = Object.entries(job.labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
  const rows = [
    ["priority", job.priority],
    ["slots", job.slots],
    ["worker", job.worker],
    ["tries", job.attempts],
    ["labels", labels],
    ["group", job.group],
    ["about", job.dedupe_key],
    ["cause", job.cause],
    ["exit code", job.exit_code],
    ["result", job.result],
  ];
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    {},
    shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

function attempts(job, now) {
  const rows = job.past_attempts.map((one) => ({
    key: one.number,
    cells: [
      number(one.number),
      one.worker,
      chip(one.ending),
      time(one.claimed_ms, now),
      number(fine(one.ended_ms - one.claimed_ms)),
      one.error ?? "",
    ],
  }));
  return table(
    ["try", "worker", "ending", "claimed", "took", "error"],
    rows,
    "None has ended yet.",
  );
}
