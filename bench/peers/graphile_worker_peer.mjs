// graphile-worker (npm): one process for each core, with the settings of its own page on performance.

import { createRequire } from "node:module";
import { begin, fleet, measure } from "./postgres_peer.mjs";

// The packages are in the throwaway directory, not beside this file.
const require = createRequire(process.env.PEERS_NODE + "/");
const { run, makeWorkerUtils } = require("graphile-worker");

const connectionString = process.env.PEERS_POSTGRES;

if (process.argv[2] === "worker") {
  const worker = {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const noop = async (payload) => begin(payload);
  await run({ preset: { worker }, taskList: { noop } });
} else {
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  const add = (payloads) =>
    utils.addJobs(payloads.map((payload) => ({ identifier: "noop", payload })));
  const left = "SELECT count(*) AS n FROM graphile_worker._private_jobs";
  await measure(Number(process.argv[2]), { add, left, hire: () => fleet(import.meta.url) });
}
