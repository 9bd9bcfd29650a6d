"""The Celery application: two tasks, on Redis, with the settings of Celery's page on optimising."""

import os
import time

import redis
from celery import Celery

URL = os.environ["PEERS_REDIS"]
app = Celery("celery_app", broker=URL)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=256,
    worker_send_task_events=False,
    task_send_sent_event=False,
    broker_pool_limit=10,
    task_compression=None,
)
store = redis.Redis.from_url(URL)


@app.task
def noop():
    return None


@app.task
def moment(before):
    store.rpush("starts", time.time_ns() - before)
