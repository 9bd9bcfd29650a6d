// Jobs that recur.

import { get, part, post, put, remove } from "/board/ask.js";
import { button, chip, h, section, table, time } from "/board/draw.js";
import { length } from "/board/words.js";
import { jobLink } from "/board/overview.js";

export const title = "Schedules";

export const load = () => get("/v1/schedules");

export function view({ schedules, now_ms: now }, { mayChange }) {
  const rows = schedules.map((one) => ({
    key: one.schedule,
    cells: [
      h("strong", {}, one.schedule),
      one.cron ? h("code", {}, one.cron) : `every ${length(one.every_ms)}`,
      one.time_zone,
      one.paused ? chip("paused", "queued") : time(one.next_ms, now),
      time(one.last_ms, now),
      one.last_job ? jobLink(one.last_job) : "–",
      one.type,
      mayChange ? acting(one) : "",
    ],
  }));
  return [
    h("h1", {}, "Schedules"),
    h(
      "p",
      { class: "lead" },
      "Jobs that recur. No moment runs twice, however many schedulers there are.",
    ),
    table(
      ["schedule", "when", "zone", "next", "last", "job", "type", ""],
      rows,
      "Nothing recurs yet. Add a schedule below, or by `maitre schedule add`.",
    ),
    mayChange && section("Add a schedule, or change one", form()),
  ];
}

function acting({ schedule, paused }) {
  const one = (text, act, more) =>
    button(text, act, {
      class: "quiet small",
      "data-name": schedule,
      "aria-label": `${text} ${schedule}`,
      ...more,
    });
  return h(
    "td",
    { class: "acts" },
    one("Run now", "run"),
    paused ? one("Resume", "resume") : one("Pause", "pause"),
    one("Remove", "remove"),
  );
}

function form() {
  const input = (name, label, hint, more) =>
    h(
      "label",
      {},
      label,
      h("input", {
        name,
        type: "text",
        autocomplete: "off",
        spellcheck: "false",
        placeholder: hint,
        ...more,
      }),
    );
  return h(
    "form",
    { class: "form", "data-do": "add", key: "form" },
    input("name", "Name", "nightly", { required: true }),
    input("when", "When: an interval, or a cron expression", "30s, or 0 3 * * *", {
      required: true,
    }),
    input("time_zone", "Time zone", "UTC"),
    input("type", "Type", "exec"),
    input("payload", "Command, or the payload of another type", "./backup.sh --all", {
      class: "long",
    }),
    h("button", { type: "submit" }, "Set the schedule"),
  );
}

/** What a form says, in the words of the scheduler. */
function wanted(fields) {
  const when = fields.get("when").trim();
  const isLength = /^[\d.]+\s*[a-z]/i.test(when);
  const body = isLength ? { every: when } : { cron: when };
  const zone = fields.get("time_zone").trim();
  if (zone) body.time_zone = zone;
  const [kind, payload] = [fields.get("type").trim(), fields.get("payload").trim()];
  if (kind && kind !== "exec") return { ...body, type: kind, payload };
  return { ...body, command: payload.split(/\s+/).filter(Boolean) };
}

const path = (name) => `/v1/schedules/${part(name)}`;

export const acts = {
  add: async (node) => {
    const fields = new FormData(node);
    const name = fields.get("name").trim();
    await put(path(name), wanted(fields));
    node.reset();
    return `schedule ${name} is set`;
  },
  run: async ({ dataset: { name } }) => `job ${(await post(`${path(name)}/run`)).job} is submitted`,
  pause: async ({ dataset: { name } }) => {
    await post(`${path(name)}/pause`);
    return `schedule ${name} rests`;
  },
  resume: async ({ dataset: { name } }) => {
    await post(`${path(name)}/resume`);
    return `schedule ${name} goes on`;
  },
  remove: async ({ dataset: { name } }) => {
    if (!confirm(`Remove the schedule ${name}? Jobs that it submitted stay.`)) return "";
    await remove(path(name));
    return `schedule ${name} is removed`;
  },
};
