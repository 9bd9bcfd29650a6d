// What the peers on npm that keep jobs in Postgres share: what is measured, and how it is said.

import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";

const require = createRequire(process.env.PEERS_NODE + "/");
const { Pool } = require("pg");

const N_TIMED = 100;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts the script again as a worker, once a core. */
export function fleet(script) {
  // What they say for people would hide the figures.
  const stdio = ["ignore", "ignore", "inherit", "ipc"];
  return cpus().map(() => fork(fileURLToPath(script), ["worker"], { stdio }));
}

/** Lets `nJobs` go through, and says the figures as the last line of the output. */
export async function measure(nJobs, { submit, left, hire }) {
  const pool = new Pool({ connectionString: process.env.PEERS_POSTGRES });
  const nLeft = async () => Number((await pool.query(left)).rows[0].n);
  // Counting costs the server time that the workers could have: seldom while much is left.
  const empty = async () => {
    let n;
    while ((n = await nLeft()) > 0) await sleep(Math.min(100, 5 + n / 100));
  };
  await submit(nJobs, false);
  const workers = hire();
  let n = await nLeft();
  while ((n = await nLeft()) === nJobs) await sleep(2);
  const drained = await rate(n, empty);
  const starts = [];
  for (let n = 0; n < N_TIMED; n += 1) {
    const started = new Promise((resolve) => workers.forEach((one) => one.once("message", resolve)));
    const before = process.hrtime.bigint();
    await submit(1, true);
    await started;
    // The word of the start comes back by a pipe, which is counted too: a few tens of microseconds.
    starts.push(Number(process.hrtime.bigint() - before) / 1000);
    workers.forEach((one) => one.removeAllListeners("message"));
    await sleep(10);
  }
  await empty();
  const together = await rate(nJobs, async () => {
    await submit(nJobs, false);
    await empty();
  });
  starts.sort((a, b) => a - b);
  const figures = { drained_per_s: drained, together_per_s: together };
  console.log(JSON.stringify({ ...figures, start_p50_us: starts[starts.length >> 1] }));
  workers.forEach((one) => one.kill());
  process.exit(0);
}

async function rate(nJobs, work) {
  const start = process.hrtime.bigint();
  await work();
  return nJobs / (Number(process.hrtime.bigint() - start) / 1e9);
}
