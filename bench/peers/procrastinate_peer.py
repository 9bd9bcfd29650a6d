"""procrastinate (PyPI): one process for each core with many concurrent jobs, finished jobs
removed."""

import asyncio
import os
import subprocess
import sys
import time

import procrastinate
import psycopg

import measure

# The same for all peers: jobs in a call, and concurrent callers.
BATCH = 1000
SUBMITTERS = 4
LEFT = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
URL = os.environ["PEERS_POSTGRES"]

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL))


@app.task(name="noop")
async def noop(submitted_ns=None):
    if submitted_ns:
        print(time.time_ns() - submitted_ns, flush=True)


async def work():
    async with app.open_async():
        await app.run_worker_async(concurrency=100, delete_jobs="always", listen_notify=True)


async def submit(n_jobs):
    left = n_jobs

    async def submitter():
        nonlocal left
        while left > 0:
            n = min(BATCH, left)
            left -= n
            await noop.batch_defer_async(*[{}] * n)

    await asyncio.gather(*[submitter() for _ in range(SUBMITTERS)])


async def main():
    n_jobs = measure.n_jobs()
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await submit(n_jobs)
        words = [sys.executable, __file__, "worker"]
        with psycopg.connect(URL, autocommit=True) as connection:

            def n_left():
                return connection.execute(LEFT).fetchone()[0]

            # In production, autovacuum does this once a minute.
            connection.execute("ANALYZE")
            workers = [
                subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
                for _ in range(os.cpu_count())
            ]
            drained = measure.drained(n_jobs, n_left)
            starts = await timed(workers)
            measure.empty(n_left)
            begun = time.perf_counter()
            await submit(n_jobs)
            measure.empty(n_left)
            together = n_jobs / (time.perf_counter() - begun)
        for worker in workers:
            worker.kill()
        measure.say(drained, together, starts, n_jobs)


async def timed(workers):
    """About half of the starts are observed: those of the first worker that reports one."""
    seen = []
    loop = asyncio.get_running_loop()
    lines = asyncio.Queue()
    for worker in workers:
        loop.add_reader(worker.stdout, lambda out=worker.stdout: lines.put_nowait(out.readline()))
    for _ in range(measure.N_TIMED):
        await noop.defer_async(submitted_ns=time.time_ns())
        seen.append(int(await asyncio.wait_for(lines.get(), 60)) / 1000)
        await asyncio.sleep(measure.PAUSE_S)
    for worker in workers:
        loop.remove_reader(worker.stdout)
    return sorted(seen)[len(seen) // 2]


if __name__ == "__main__":
    asyncio.run(work() if sys.argv[1] == "worker" else main())
