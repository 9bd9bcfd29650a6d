"""Celery with Redis: tasks in Python, one process for each core."""

import os
import subprocess
import time

import celery_app
import measure
from celery_app import moment, noop, store

WORKER = [
    "celery",
    "-A",
    "celery_app",
    "worker",
    "--pool=prefork",
    "--loglevel=ERROR",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
]


def n_left():
    return store.llen("celery") + store.hlen("unacked")


def submit(n_jobs):
    with celery_app.app.producer_pool.acquire(block=True) as producer:
        for _ in range(n_jobs):
            noop.apply_async(producer=producer)


def start_one():
    moment.delay(time.time_ns())
    return int(store.blpop("starts", timeout=60)[1])


def main():
    n_jobs = measure.n_jobs()
    store.flushall()
    submit(n_jobs)
    command = [*WORKER, f"--concurrency={os.cpu_count()}"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        drained = measure.drained(n_jobs, n_left)
        start_one()
        start = measure.starts(start_one)

        def both():
            submit(n_jobs)
            measure.empty(n_left)

        together = measure.rate(n_jobs, both)
    finally:
        worker.terminate()
        worker.wait()
    measure.say(drained, together, start, n_jobs)


if __name__ == "__main__":
    main()
