"""Scenarios of Celery on kombu's transport for Service Bus, which creates its queues itself.

Prints one line for each scenario and exits 1 if one failed. An argument selects those
whose name contains it.
"""

import collections
import os
import socket
import sys
import time
import traceback
import uuid

for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
    os.environ.pop(name, None)  # the authorities are those of certifi, with that of the emulator

from celery import Celery  # noqa: E402
from celery.contrib.testing.worker import start_worker  # noqa: E402
from kombu import Connection  # noqa: E402

PARTS = dict(p.split("=", 1) for p in os.environ["SERVICEBUS_CONNECTION_STRING"].split(";") if p)
ADDRESS = PARTS["Endpoint"].removeprefix("sb://").rstrip("/").split(":")[0]
HOST = ADDRESS + ".net"  # the transport accepts no address, and dials the ports of the service
BROKER = "azureservicebus://{}:{}@{}".format(PARTS["SharedAccessKeyName"], PARTS["SharedAccessKey"], HOST)
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *args, **kwargs: resolve(ADDRESS if host == HOST else host, *args, **kwargs)
OPTIONS = {"queue_name_prefix": uuid.uuid4().hex[:8] + "-", "wait_time_seconds": 1, "retry_total": 1}

app = Celery("suite", broker=BROKER)
app.conf.update(broker_transport_options=OPTIONS, task_acks_late=True, worker_prefetch_multiplier=1, task_ignore_result=True, worker_enable_remote_control=False,
                task_default_queue="tasks", task_routes={"routed": {"queue": "other"}}, broker_connection_retry_on_startup=True)
ran = collections.Counter()


@app.task(name="note")
def note(name):
    ran[name] += 1


@app.task(name="routed")
def routed(name):
    ran[name] += 1


@app.task(name="flaky", bind=True, max_retries=3)
def flaky(self, name):
    ran[name] += 1
    if ran[name] < 3:
        raise self.retry(countdown=0)


def wait(name, n, seconds=60):
    end = time.monotonic() + seconds
    while ran[name] < n and time.monotonic() < end:
        time.sleep(0.05)
    assert ran[name] == n, f"{name} ran {ran[name]} times, want {n}"


def worker(queues="tasks,other"):
    return start_worker(app, pool="solo", perform_ping_check=False, queues=queues, shutdown_timeout=60)


def each_task_runs_once():
    names = [f"task-{i}" for i in range(20)]
    with worker():
        for name in names:
            note.delay(name)
        for name in names:
            wait(name, 1)
        time.sleep(2)  # for repeats
    assert all(ran[name] == 1 for name in names), ran


def tasks_wait_for_a_worker():
    note.delay("early")
    with worker():
        wait("early", 1)


def a_retried_task_runs_again():
    with worker():
        flaky.delay("flaky")
        wait("flaky", 3)


def a_delayed_task_runs_later():
    with worker():
        began = time.monotonic()
        note.apply_async(("later",), countdown=3)
        wait("later", 1)
        assert time.monotonic() - began >= 2.5, "it ran too early"


def tasks_are_routed_to_queues():
    routed.delay("routed")
    with worker("tasks"):
        note.delay("other task")
        wait("other task", 1)
        assert ran["routed"] == 0, "a worker of another queue ran it"
    with worker("other"):
        wait("routed", 1)


def an_unsettled_message_is_redelivered():
    # kombu does not abandon a requeued message, so it returns when its lock expires.
    with Connection(BROKER, transport_options={**OPTIONS, "peek_lock_seconds": 5}) as connection:
        queue = connection.SimpleQueue("simple")
        queue.put({"n": 1})
        first = queue.get(block=True, timeout=30)
        first.requeue()
        again = queue.get(block=True, timeout=30)
        assert again.payload == {"n": 1}, again.payload
        again.ack()
        try:
            queue.get(block=True, timeout=3)
        except queue.Empty:
            return
        raise AssertionError("the message is still there")


def main():
    failed = 0
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for scenario in (each_task_runs_once, tasks_wait_for_a_worker, a_retried_task_runs_again, a_delayed_task_runs_later, tasks_are_routed_to_queues, an_unsettled_message_is_redelivered):
        if only not in scenario.__name__:
            continue
        try:
            scenario()
            print("ok  ", scenario.__name__, flush=True)
        except Exception:
            failed += 1
            print("FAIL", scenario.__name__, traceback.format_exc(), flush=True)
    os._exit(1 if failed else 0)  # threads of the SDK may still run


main()
