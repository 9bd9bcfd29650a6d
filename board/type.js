// One type: what holds for it, what runs, and what ran.

import { get, part, patch, post } from "/board/ask.js";
import { button, chip, h, number, section, table, time } from "/board/draw.js";
import { fine } from "/board/words.js";
import { jobs } from "/board/overview.js";

export const title = "Type";

/** How often, and for how long, all schedulers are waited for after a change. */
const LOOKS = 10;
const LOOK_MS = 300;

/** Fields of a policy as people look for them; others follow. */
const ORDER = (
  "enabled interval detect_timeout runtime_max drain_grace proposals_max jobs_max worker_max " +
  "run_timeout retries_max retry_backoff lane resource tenant"
).split(" ");

export async function load(name) {
  const [kind, ran, live] = await Promise.all([
    get(`/v1/types/${part(name)}`),
    get(`/v1/types/${part(name)}/runs`),
    get(`/v1/jobs?type=${part(name)}&state=claimed,running&page_size=100`),
  ]);
  return { kind, runs: ran.runs, live };
}

export function view({ kind, runs, live }, { mayChange }) {
  const now = kind.now_ms;
  const parts = [
    h("h1", {}, kind.display_name || kind.type),
    h(
      "p",
      { class: "lead" },
      h("code", {}, kind.type),
      kind.description ? ` — ${kind.description}` : "",
    ),
    detection(kind, now, mayChange),
    section("Jobs in process", jobs(live.jobs, now, "No job of this type is in process.")),
    section("Policy", policy(kind, mayChange)),
  ];
  for (const place of ["admin", "worker"]) {
    const fields = kind.descriptor?.[place] ?? [];
    if (fields.length)
      parts.push(section(`Configuration: ${place}`, config(kind, place, mayChange)));
  }
  const good = runs.filter((run) => run.status === "succeeded");
  const bad = runs.filter((run) => run.status !== "succeeded");
  parts.push(section("Last runs that went well", history(good, now, "None yet.")));
  parts.push(section("Last runs that did not", history(bad, now, "None.")));
  return parts;
}

function detection(kind, now, mayChange) {
  const run = kind.running;
  const isOn = kind.policy.enabled?.value === "true";
  const lookers =
    kind.detectors.join(", ") || (kind.elsewhere ? "workers of another scheduler" : "");
  const state = run
    ? [
        chip(run.phase, "running"),
        ` run ${run.run}: ${run.proposed} proposed, ${run.taken} taken; `,
        `began `,
        time(run.started_ms, now),
        `, its time is out `,
        time(run.until_ms, now),
        run.worker ? `; ${run.worker} looks` : "",
        h("span", { class: "soft" }, ` led by ${run.leader}`),
      ]
    : kind.descriptor === null
      ? "No worker looks for work of this type: its jobs are submitted."
      : !isOn
        ? [chip("off", "queued"), " nobody is asked to look"]
        : !lookers
          ? [chip("no detector", "failed"), " no worker that is well can look for it now"]
          : kind.next_due_ms
            ? ["next due ", time(kind.next_due_ms, now)]
            : "due now";
  return h(
    "div",
    { class: "panel", key: "detection" },
    h("p", {}, state),
    h(
      "p",
      { class: "soft" },
      `lane ${kind.policy.lane?.value ?? "default"}`,
      lookers ? ` · looked for by ${lookers}` : "",
      kind.schedulers > 1 ? ` · ${current(kind)} go by what is set` : "",
    ),
    mayChange &&
      kind.descriptor !== null &&
      h(
        "p",
        { class: "acts" },
        button("Run detection now", "detect", { "data-type": kind.type }),
        run && button("Call it off", "cancel", { "data-type": kind.type, class: "quiet" }),
        button("Ask what it is", "describe", { "data-type": kind.type, class: "quiet" }),
      ),
  );
}

function policy(kind, mayChange) {
  const place = ([name]) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const fields = Object.entries(kind.policy).sort((one, other) => place(one) - place(other));
  const rows = fields.map(([name, one]) => ({
    key: name,
    cells: [
      h("label", { for: `f-${name}` }, name),
      field(kind, name, one.value, mayChange),
      h(
        "td",
        {},
        chip(one.origin, one.origin === "set" ? "set" : "plain"),
        one.origin === "set" && mayChange && unset(kind, name),
      ),
      h("td", { class: "soft" }, one.help),
    ],
  }));
  return table(["field", "value", "says", "meaning"], rows, "");
}

function config(kind, place, mayChange) {
  const rows = kind.descriptor[place].map((one) => {
    const value = plain(kind[place][one.name]);
    const name = `${place}.${one.name}`;
    const on = one.visible_if;
    const isHidden = on && plain(kind[place][on.field]) !== plain(on.is);
    const isOther = !isHidden && value !== plain(one.default);
    return {
      key: name,
      cells: [
        h("label", { for: `f-${name}` }, one.name),
        isHidden
          ? h("span", { class: "soft" }, "does not count now")
          : field(kind, name, value, mayChange, one.choices),
        h("td", {}, plain(one.default), mayChange && isOther && unset(kind, name)),
        h("td", { class: "soft" }, [one.section && `${one.section}: `, one.help, range(one)]),
      ],
    };
  });
  return table(["field", "value", "by default", "meaning"], rows, "");
}

/** A value as people write it. */
function plain(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function range({ min, max, visible_if: on }) {
  const words = [];
  if (min !== null && min !== undefined) words.push(`from ${min}`);
  if (max !== null && max !== undefined) words.push(`to ${max}`);
  if (on) words.push(`if ${on.field} is ${plain(on.is)}`);
  return words.length ? ` (${words.join(" ")})` : "";
}

function field(kind, name, value, mayChange, choices) {
  const props = { id: `f-${name}`, "data-do": "set", "data-type": kind.type, "data-field": name };
  if (!mayChange) return h("td", { class: "value" }, value);
  if (value === "true" || value === "false") {
    return h(
      "td",
      { class: "value" },
      h("input", { ...props, type: "checkbox", checked: value === "true" }),
    );
  }
  if (choices?.length) {
    const option = (one) => h("option", { selected: one === value }, one);
    return h("td", { class: "value" }, h("select", props, choices.map(option)));
  }
  return h(
    "td",
    { class: "value" },
    h("input", { ...props, type: "text", value, autocomplete: "off", spellcheck: "false" }),
  );
}

const unset = (kind, name) =>
  button("unset", "unset", {
    class: "quiet small",
    "data-type": kind.type,
    "data-field": name,
    "aria-label": `unset ${name}`,
  });

function history(runs, now, empty) {
  const refused = (run) =>
    Object.entries(run.refused)
      .map(([why, n]) => `${n} ${why}`)
      .join(", ");
  const rows = runs.map((run) => ({
    key: run.run,
    cells: [
      h("td", {}, run.run, run.asked ? chip("asked for", "plain") : ""),
      chip(run.status),
      time(run.started_ms, now),
      number(fine(run.ended_ms - run.started_ms)),
      run.worker,
      number(run.proposed),
      number(run.taken),
      refused(run),
      number(`${run.succeeded} / ${run.failed} / ${run.cancelled}`),
      run.error,
    ],
  }));
  return table(
    [
      "run",
      "status",
      "began",
      "took",
      "worker",
      "proposed",
      "taken",
      "refused",
      "done / failed / called off",
      "why",
    ],
    rows,
    empty,
  );
}

const path = (data) => `/v1/types/${part(data.type)}`;

const current = (kind) => `${kind.schedulers_current} of ${kind.schedulers} schedulers`;

/** Changes one value, and says what holds now, once every scheduler goes by it. */
async function change(data, value) {
  let kind = await patch(path(data), { [data.field]: value });
  for (let n = 0; n < LOOKS && kind.schedulers_current < kind.schedulers; n += 1) {
    await new Promise((done) => setTimeout(done, LOOK_MS));
    kind = await get(path(data));
  }
  const [place, name] = data.field.includes(".") ? data.field.split(".") : ["policy", data.field];
  const now = place === "policy" ? kind.policy[name]?.value : JSON.stringify(kind[place][name]);
  const who = kind.schedulers > 1 ? `; ${current(kind)} go by it` : "";
  return `${data.field} is ${now} now${who}`;
}

export const acts = {
  set: (node) =>
    change(
      node.dataset,
      node.type === "checkbox" ? String(node.checked) : node.value.trim() || null,
    ),
  unset: (node) => change(node.dataset, null),
  detect: async (node) => {
    const { is_running: isRunning } = await post(`${path(node.dataset)}/detect`);
    return isRunning ? "another run follows the one that is under way" : "a run is asked for";
  },
  cancel: async (node) => {
    const { run } = await post(`${path(node.dataset)}/cancel`);
    return run ? `run ${run} is called off` : "nothing runs";
  },
  describe: async (node) => {
    const { worker } = await post(`${path(node.dataset)}/describe`);
    return worker ? `${worker} is asked` : "a worker of another scheduler is asked";
  },
};
