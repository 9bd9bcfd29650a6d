"""procrastinate (PyPI): one process a core with many jobs at once, finished jobs removed."""

import asyncio
import os
import subprocess
import sys
import time

import procrastinate
import psycopg

import measure

BATCH = 1000
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
    for n in range(0, n_jobs, BATCH):
        await noop.batch_defer_async(*[{}] * min(BATCH, n_jobs - n))


async def main():
    n_jobs = measure.n_jobs()
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await submit(n_jobs)
        words = [sys.executable, __file__, "worker"]
        workers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count())]
        with psycopg.connect(URL, autocommit=True) as connection:
            n_left = lambda: connection.execute(LEFT).fetchone()[0]
            empty = lambda: measure.until(lambda: n_left() == 0)
            measure.until(lambda: n_left() < n_jobs)
            drained = measure.rate(n_left(), empty)
            starts = await timed(workers)
            empty()
            begun = time.perf_counter()
            await submit(n_jobs)
            empty()
            together = n_jobs / (time.perf_counter() - begun)
        for worker in workers:
            worker.kill()
        measure.say(drained, together, starts)


async def timed(workers):
    """Half of the starts or so are heard: those of the first worker that says one."""
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
