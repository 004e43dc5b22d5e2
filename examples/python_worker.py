#!/usr/bin/env python3
"""A remote worker for Windlass in plain Python: nothing but the standard library.

    python3 examples/python_worker.py --server http://127.0.0.1:9463 --queue email

It leases jobs, runs the handler of each job's kind on a thread, extends the leases while jobs run, and reports the outcome of
each attempt. On SIGTERM or Ctrl-C it takes no new jobs, gives running jobs some time to finish, and gives back the rest.
"""

import argparse
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor


class Failure(Exception):
    """Raised by a handler to fail with details: class, permanent, retryAfter, retryIn, snooze."""

    def __init__(self, message, **advice):
        super().__init__(message)
        self.advice = advice


class Cancelled(Exception):
    """Raised by a handler that stopped because its stop event was set."""


# Handlers, by kind. Each gets the job and an event that is set when it should stop. Its return value is stored as the result.


def echo(job, stop):
    return {"payload": job["payload"], "attempt": job["attempt"]}


def slow(job, stop):
    seconds = (job["payload"] or {}).get("seconds", 1)
    if stop.wait(seconds):
        raise Cancelled()
    return {"slept": seconds}


def flaky(job, stop):
    fails = (job["payload"] or {}).get("fails", 1)
    if job["failures"] < fails:
        raise Failure("not yet", **{"class": "Timeout", "retryIn": 50})


def invalid(job, stop):
    raise Failure("the payload is wrong", **{"class": "ValidationError"})


HANDLERS = {"echo": echo, "slow": slow, "flaky": flaky, "invalid": invalid}


class Server:
    """The calls a worker makes. After a network error or a 503 a call is repeated: every call is safe to repeat."""

    def __init__(self, url, token, worker):
        self.url, self.token, self.worker = url.rstrip("/"), token, worker

    def call(self, path, body, timeout=90):
        request = urllib.request.Request(
            self.url + "/api/v1/leases" + path,
            data=json.dumps({"worker": self.worker, **body}).encode(),
            headers={"Content-Type": "application/json"},
        )
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)

    def call_until_answered(self, path, body, give_up):
        """Repeats a call until the server answers, or until `give_up` returns true."""
        pause = 0.1
        while True:
            try:
                return self.call(path, body)
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503):
                    print(f"refused: {error.code} {error.read().decode(errors='replace')}", flush=True)
                    return {"results": []}
            except OSError as error:
                print(f"the server cannot be reached: {error}", flush=True)
            if give_up():
                return {"results": []}
            time.sleep(pause)
            pause = min(pause * 2, 5)


class Worker:
    def __init__(self, server, queues, slots, lease_ms, grace):
        self.server, self.queues, self.slots, self.lease_ms, self.grace = server, queues, slots, lease_ms, grace
        self.stopping = threading.Event()
        self.running = {}  # lease -> (job, stop event)
        self.changed = threading.Condition()
        self.deadline = None

    def run(self):
        threads = ThreadPoolExecutor(self.slots)
        extender = threading.Thread(target=self.extend, daemon=True)
        extender.start()
        while not self.stopping.is_set():
            free = self.wait_for_slot()
            if free:
                for job in self.take(free):
                    threads.submit(self.attempt, job)
        self.drain()
        threads.shutdown(wait=True)

    def wait_for_slot(self):
        with self.changed:
            while len(self.running) >= self.slots and not self.stopping.is_set():
                self.changed.wait(1)
            return self.slots - len(self.running)

    def take(self, free):
        body = {"max": free, "waitMs": 2000, "leaseMs": self.lease_ms}
        if self.queues:
            body["queues"] = self.queues
        jobs = self.server.call_until_answered("", body, self.stopping.is_set).get("jobs", [])
        with self.changed:
            for job in jobs:
                self.running[job["lease"]] = (job, threading.Event())
        return jobs

    def attempt(self, job):
        stop = self.running[job["lease"]][1]
        fence = {"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]}
        handler = HANDLERS.get(job["kind"])
        try:
            if handler is None:
                raise Failure(f"no handler for {job['kind']}", **{"class": "UnknownKind"})
            path, report = "/complete", {"result": handler(job, stop)}
        except Cancelled:
            # Stopped by a cancel (then the job ends cancelled) or because this process stops (then the job is given back).
            path, report = "/fail", {"release": True}
        except Failure as failure:
            path, report = "/fail", {"message": str(failure), **failure.advice}
        except Exception as error:  # a bug in a handler fails the attempt, not the worker
            path, report = "/fail", {"class": type(error).__name__, "message": str(error)}
        answer = self.server.call_until_answered(path, {"results": [{**fence, **report}]}, self.too_late)
        for result in answer["results"]:
            print(f"job {job['id']} attempt {job['attempt']} {path[1:]}: {result['result']}", flush=True)
        with self.changed:
            self.running.pop(job["lease"], None)
            self.changed.notify_all()

    def extend(self):
        """Renews all leases every third of their length, and passes cancels to the handlers."""
        while True:
            time.sleep(self.lease_ms / 3000)
            with self.changed:
                held = list(self.running.values())
            if not held:
                continue
            items = [{"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]} for job, _ in held]
            body = {"results": items, "leaseMs": self.lease_ms}
            answer = self.server.call_until_answered("/extend", body, self.too_late)
            for (job, stop), result in zip(held, answer["results"]):
                if result["result"] != "ok":
                    print(f"job {job['id']}: {result['result']}, stopping it", flush=True)
                    stop.set()

    def stop(self, *_):
        if self.stopping.is_set():
            os._exit(130)
        print("stopping", flush=True)
        self.stopping.set()
        self.deadline = time.monotonic() + self.grace

    def too_late(self):
        return self.deadline is not None and time.monotonic() > self.deadline + 5

    def drain(self):
        """Lets attempts finish within the grace time, then asks the rest to stop; those are given back."""
        with self.changed:
            while self.running and time.monotonic() < self.deadline:
                self.changed.wait(max(0.05, min(1, self.deadline - time.monotonic())))
            for _, stop in self.running.values():
                stop.set()


def main():
    parser = argparse.ArgumentParser(description="A remote worker for Windlass.")
    parser.add_argument("--server", default=os.environ.get("WINDLASS_SERVER", "http://127.0.0.1:9463"))
    parser.add_argument("--token", default=os.environ.get("WINDLASS_TOKEN"))
    parser.add_argument("--queue", action="append", default=[], help="may be repeated; any queue if absent")
    parser.add_argument("--slots", type=int, default=4, help="how many jobs run at once")
    parser.add_argument("--lease-ms", type=int, default=30_000)
    parser.add_argument("--grace", type=float, default=10, help="seconds that running jobs may take after a stop")
    args = parser.parse_args()
    name = f"{socket.gethostname()}-{os.getpid()}"
    worker = Worker(Server(args.server, args.token, name), args.queue, args.slots, args.lease_ms, args.grace)
    signal.signal(signal.SIGTERM, worker.stop)
    signal.signal(signal.SIGINT, worker.stop)
    print(f"{name} works for {args.server}", flush=True)
    worker.run()


if __name__ == "__main__":
    main()
