// pg-boss (npm): one process a core, as many jobs a fetch as we submit at once, and no pause.

import { createRequire } from "node:module";
import { fleet, measure } from "./postgres_peer.mjs";

const require = createRequire(process.env.PEERS_NODE + "/");
const PgBoss = require("pg-boss");

const QUEUE = "peers";
const BATCH = 1000;
const boss = new PgBoss({ connectionString: process.env.PEERS_POSTGRES, max: 10 });
await boss.start();

if (process.argv[2] === "worker") {
  const options = { batchSize: BATCH, pollingIntervalSeconds: 0.5 };
  await boss.work(QUEUE, options, async (jobs) => {
    if (jobs.some((job) => job.data.isTimed)) process.send("started");
  });
} else {
  await boss.createQueue(QUEUE);
  const submit = async (nJobs, isTimed) => {
    for (let n = 0; n < nJobs; n += BATCH) {
      const one = { name: QUEUE, data: { isTimed } };
      await boss.insert(Array.from({ length: Math.min(BATCH, nJobs - n) }, () => one));
    }
  };
  const left = `SELECT count(*) AS n FROM pgboss.job WHERE name = '${QUEUE}' AND state < 'completed'`;
  await measure(Number(process.argv[2]), { submit, left, hire: () => fleet(import.meta.url) });
}
