// BullMQ: bulk adds, a worker process for each core with many concurrent jobs, finished jobs removed.

import { fork } from "node:child_process";
import { cpus } from "node:os";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

// The packages are in the throwaway directory, not beside this file.
const require = createRequire(process.env.PEERS_NODE + "/");
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const connection = new Redis(process.env.PEERS_REDIS, { maxRetriesPerRequest: null });
const NAME = "peers";
const BATCH = 1000;
const N_TIMED = 100;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

if (process.argv[2] === "worker") {
  const run = async (job) => {
    if (job.data.isTimed) process.send("started");
  };
  new Worker(NAME, run, { connection, concurrency: 100, removeOnComplete: { count: 0 } });
} else {
  await main(Number(process.argv[2]));
}

async function main(nJobs) {
  await connection.flushall();
  const queue = new Queue(NAME, { connection, defaultJobOptions: { removeOnComplete: true } });
  await submit(queue, nJobs);
  const starts = [];
  const workers = cpus().map(() => fork(fileURLToPath(import.meta.url), ["worker"]));
  const next = () => new Promise((resolve) => workers.forEach((one) => one.once("message", resolve)));
  let n;
  while ((n = await left(queue)) === nJobs) await sleep(1);
  const drained = await rate(n, () => empty(queue));
  for (let n = 0; n < N_TIMED; n += 1) {
    const before = process.hrtime.bigint();
    const started = next();
    await queue.add("moment", { isTimed: true });
    await started;
    // The start is reported by a pipe, whose latency is included: a few tens of microseconds.
    starts.push(Number(process.hrtime.bigint() - before) / 1000);
    workers.forEach((one) => one.removeAllListeners("message"));
    await sleep(10);
  }
  const together = await rate(nJobs, async () => {
    await submit(queue, nJobs);
    await empty(queue);
  });
  starts.sort((a, b) => a - b);
  const figures = { jobs: nJobs, drained_per_s: drained, together_per_s: together };
  console.log(JSON.stringify({ ...figures, start_p50_us: starts[starts.length >> 1] }));
  workers.forEach((one) => one.kill());
  process.exit(0);
}

async function submit(queue, nJobs) {
  for (let n = 0; n < nJobs; n += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, nJobs - n) }, () => ({ name: "noop", data: {} }));
    await queue.addBulk(batch);
  }
}

async function left(queue) {
  return queue.getJobCountByTypes("waiting", "active", "prioritized");
}

async function empty(queue) {
  while ((await left(queue)) > 0) await sleep(2);
}

async function rate(nJobs, work) {
  const start = process.hrtime.bigint();
  await work();
  return nJobs / (Number(process.hrtime.bigint() - start) / 1e9);
}
