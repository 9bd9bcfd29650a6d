// How much there is of what, who works, and why what waits waits.

import { get } from "/board/ask.js";
import * as charts from "/board/charts.js";
import { bar, chip, h, number, section, table, time } from "/board/draw.js";
import { count, fine, length, percent } from "/board/words.js";

const JOBS = 30;
const NO_JOBS = "No jobs yet. `maitre submit -- echo hello` submits one.";

export const title = "Overview";

export async function load() {
  const [site, list] = await Promise.all([get("/v1/overview"), get(`/v1/jobs?page_size=${JOBS}`)]);
  return { site, list, series: await charts.load(site.now_ms) };
}

export const acts = charts.acts;

export function view({ site, list, series }) {
  const now = site.now_ms;
  return [
    h("h1", {}, "Overview"),
    cards(site, series),
    charts.view(series),
    section("Waiting longest, and why", waiting(site)),
    section("Workers", workers(site, now)),
    section("Newest jobs", jobs(list.jobs, now, NO_JOBS)),
  ];
}

function cards(site, series) {
  const slots = site.pools.reduce((sum, pool) => sum + pool.slots, 0);
  const used = site.pools.reduce((sum, pool) => sum + pool.slots_used, 0);
  const there = site.workers.filter((worker) => worker.state !== "gone").length;
  const waits = site.waits;
  return h(
    "div",
    { class: "cards" },
    card("waiting", site.queued, charts.queue(series, site.queued)),
    card("running", site.running, h("small", {}, `policy ${site.policy}`)),
    card("slots in use", `${used} of ${slots}`, bar(used, slots, "slots in use")),
    card(
      "workers",
      there,
      h(
        "small",
        {},
        site.pools.map((pool) => `${pool.pool}: ${pool.slots_used}/${pool.slots}`).join(" · ") ||
          "none has come yet",
      ),
    ),
    card(
      "wait until started",
      waits.n ? fine(waits.p50_ms) : "–",
      h(
        "small",
        {},
        waits.n
          ? `half of ${count(waits.n, "job")} in 5 minutes; 9 of 10 within ${fine(waits.p90_ms)}`
          : "nothing ended in the last 5 minutes",
      ),
    ),
  );
}

const card = (name, value, more) =>
  h(
    "div",
    { class: "card", key: name },
    h("span", { class: "name" }, name),
    h("strong", {}, value),
    more,
  );

function waiting(site) {
  const rows = site.slowest.map((one) => ({
    key: one.id,
    cells: [
      jobLink(one.id),
      one.type,
      one.tenant,
      number(length(one.waits_ms)),
      h("td", {}, chip(one.reason, "queued"), " ", h("span", { class: "soft" }, one.detail)),
      number(one.alike ? `+${one.alike}` : ""),
    ],
  }));
  return table(
    ["job", "type", "tenant", "waits", "why", "like it"],
    rows,
    "Nothing waits. `maitre submit -- echo hello` submits a job.",
  );
}

function workers(site, now) {
  const rows = site.workers.map((worker) => ({
    key: worker.worker,
    cells: [
      h("strong", {}, worker.worker),
      chip(worker.state),
      h(
        "td",
        {},
        bar(worker.slots_used, worker.slots, `slots of ${worker.worker}`),
        " ",
        `${worker.slots_used}/${worker.slots}`,
      ),
      worker.pool,
      worker.types.join(", ") || "any",
      worker.software,
      number(worker.cpu_pct === null ? "" : `${Math.round(worker.cpu_pct)} %`),
      time(worker.heard_ms, now),
    ],
  }));
  return table(
    ["worker", "state", "slots", "pool", "types", "software", "cpu", "heard"],
    rows,
    "No worker is here. `maitre work --exec --name w1` starts one that runs commands.",
  );
}

/** Jobs with what they are doing. */
export function jobs(all, now, empty) {
  const rows = all.map((job) => ({
    key: job.id,
    cells: [
      jobLink(job.id),
      job.type,
      job.tenant,
      h("td", {}, chip(job.state), job.cause ? ` ${job.cause}` : ""),
      h("td", {}, progress(job)),
      job.worker ?? "",
      number(job.attempts),
      time(job.created_ms, now),
    ],
  }));
  return table(
    ["job", "type", "tenant", "state", "progress", "worker", "tries", "submitted"],
    rows,
    empty,
  );
}

/** How far a job is, and with what. */
export function progress(job) {
  const is_live = job.state === "running" || job.state === "claimed";
  if (!is_live) return h("span", { class: "soft" }, job.error ?? "");
  if (job.progress === null) return "";
  const words = [job.stage, job.note].filter(Boolean).join(": ");
  return [
    h("progress", { max: 1, value: job.progress, "aria-label": `progress of job ${job.id}` }),
    ` ${percent(job.progress)} `,
    h("span", { class: "soft" }, words),
  ];
}

export const jobLink = (id) => h("a", { href: `#/jobs/${id}` }, id);
