// pg-boss (npm): one process for each core. A fetch takes as many jobs as a submission has.

import { createRequire } from "node:module";
import { begin, fleet, measure } from "./postgres_peer.mjs";

const require = createRequire(process.env.PEERS_NODE + "/");
const PgBoss = require("pg-boss");

const QUEUE = "peers";
const BATCH = 1000;
const boss = new PgBoss({ connectionString: process.env.PEERS_POSTGRES, max: 10 });
await boss.start();

if (process.argv[2] === "worker") {
  const options = { batchSize: BATCH, pollingIntervalSeconds: 0.5 };
  const worker = await boss.work(QUEUE, options, async (jobs) => {
    jobs.forEach((job) => begin(job.data));
    // After several jobs there may be more, which should not wait for the next poll.
    if (jobs.length > 1) boss.notifyWorker(worker);
  });
} else {
  await boss.createQueue(QUEUE);
  const add = (all) => boss.insert(all.map((data) => ({ name: QUEUE, data })));
  const left = `SELECT count(*) AS n FROM pgboss.job WHERE name = '${QUEUE}' AND state < 'completed'`;
  await measure(Number(process.argv[2]), { add, left, hire: () => fleet(import.meta.url) });
}
