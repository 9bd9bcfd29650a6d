// The common part of npm peers that keep jobs in Postgres: measurements and their output.

import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";

const require = createRequire(process.env.PEERS_NODE + "/");
const { Pool } = require("pg");

// The same for all peers: jobs in a call, and concurrent callers.
const BATCH = 1000;
const SUBMITTERS = 4;
const N_TIMED = 100;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// One clock for all processes of the machine.
const now = () => process.hrtime.bigint();

/** What a job carries that says when it starts. */
export const timed = () => ({ submitted: String(now()) });

/** What a worker does with what a job carries. */
export function begin({ submitted }) {
  if (submitted) process.send(Number(now() - BigInt(submitted)) / 1000);
}

/** Starts the script again as a worker, once a core. */
export function fleet(script) {
  // Their own output would hide the results.
  const stdio = ["ignore", "ignore", "inherit", "ipc"];
  return cpus().map(() => fork(fileURLToPath(script), ["worker"], { stdio }));
}

/**
 * Lets `nJobs` go through, and says the figures as the last line of the output. `add` submits
 * what the jobs of one call carry, and `left` counts jobs that are not done.
 */
export async function measure(nJobs, { add, left, hire }) {
  const pool = new Pool({ connectionString: process.env.PEERS_POSTGRES });
  const nLeft = async () => Number((await pool.query(left)).rows[0].n);
  // A count costs the server time that workers could use. So polls are rare while the queue is
  // long, but frequent enough for up to 100,000 jobs in a second.
  const empty = async () => {
    let n;
    while ((n = await nLeft()) > 0) await sleep(Math.min(1000, 5 + n / 100));
  };
  await submit(nJobs, add);
  // In production, autovacuum does this once a minute. Plans for empty tables would be unfair.
  await pool.query("ANALYZE");
  const workers = hire();
  // From the first observed end to the last. An observation is as old as its query.
  let n;
  let start;
  do {
    await sleep(2);
    start = now();
    n = await nLeft();
  } while (n === nJobs);
  await empty();
  const drained = perSecond(n, start);
  const starts = [];
  for (let n = 0; n < N_TIMED; n += 1) {
    const started = new Promise((resolve) => workers.forEach((one) => one.once("message", resolve)));
    await add([timed()]);
    starts.push(await started);
    workers.forEach((one) => one.removeAllListeners("message"));
    await sleep(10);
  }
  await empty();
  start = now();
  await submit(nJobs, add);
  await empty();
  const together = perSecond(nJobs, start);
  starts.sort((a, b) => a - b);
  const figures = { jobs: nJobs, drained_per_s: drained, together_per_s: together };
  console.log(JSON.stringify({ ...figures, start_p50_us: starts[starts.length >> 1] }));
  workers.forEach((one) => one.kill());
  process.exit(0);
}

async function submit(nJobs, add) {
  let left = nJobs;
  const submitter = async () => {
    while (left > 0) {
      const n = Math.min(BATCH, left);
      left -= n;
      await add(Array.from({ length: n }, () => ({})));
    }
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
}

function perSecond(nJobs, start) {
  return nJobs / (Number(now() - start) / 1e9);
}
