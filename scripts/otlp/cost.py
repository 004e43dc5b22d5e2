"""Measures what tracing costs a node: its processor time for each job, without tracing and with 1 % of the traces recorded, alternately.
Jobs are stored in batches and drained by leases, on SQLite.
Usage: python3 scripts/otlp/cost.py BINARY [RUNS] [JOBS]"""

import http.client
import http.server
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading

# Small, because one request is one trace: with large ones, most runs would record none at all.
BATCH = 50


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def processor_time(pid):
    """In microseconds; of the scheduler, which counts finer than clock ticks."""
    tasks = os.listdir(f"/proc/{pid}/task")
    return sum(int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) for task in tasks) / 1000


def run(binary, jobs, collector):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "OTEL_"))}
    variables |= {"WINDLASS_LOGS_LEVEL": "info", "WINDLASS_TELEMETRY_SAMPLED": "0.01", "OTEL_METRICS_EXPORTER": "none"}
    if collector:
        variables["WINDLASS_TELEMETRY_ENDPOINT"] = collector
    with tempfile.TemporaryDirectory() as home:
        arguments = [binary, "serve", "--store", "sqlite:jobs.db", "--listen", "127.0.0.1:0", "--quiet-jobs", "--log-format", "text"]
        node = subprocess.Popen(arguments, cwd=home, env=variables, stderr=subprocess.PIPE, text=True)
        try:
            address = next(found[1] for line in node.stderr if (found := re.search(r"serves http://([0-9.:]+)", line)))
            threading.Thread(target=lambda: [None for _ in node.stderr], daemon=True).start()
            connection = http.client.HTTPConnection(address)

            def post(path, body):
                connection.request("POST", f"/api/v1/{path}", json.dumps(body), {"content-type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status in (200, 201), text
                return json.loads(text)

            def step(count):
                for _ in range(0, count, BATCH):
                    post("jobs/batch", {"jobs": [{"kind": "far", "payload": {"n": n}} for n in range(BATCH)]})
                left = count
                while left > 0:
                    leased = post("leases", {"worker": "w1", "max": 100, "waitMs": 1000})["jobs"]
                    results = [{"id": job["id"], "attempt": job["attempt"], "lease": job["lease"]} for job in leased]
                    if results:
                        post("leases/complete", {"worker": "w1", "results": results})
                    left -= len(results)

            # What happens once, such as reading settings, is not counted.
            step(BATCH)
            before = processor_time(node.pid)
            step(jobs)
            return (processor_time(node.pid) - before) / jobs
        finally:
            node.terminate()
            node.wait()


def main():
    binary = os.path.abspath(sys.argv[1])
    runs, jobs = (int(text) for text in (sys.argv[2:] + ["40", "10000"][len(sys.argv) - 2 :])[:2])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collector = f"http://127.0.0.1:{server.server_address[1]}"
    off, on = [], []
    for number in range(runs):
        # The order changes, so that neither always runs after the other.
        for is_on in (number % 2 == 0, number % 2 == 1):
            (on if is_on else off).append(run(binary, jobs, collector if is_on else None))
        print(f"run {number + 1}: off {off[-1]:.2f} µs, 1 % {on[-1]:.2f} µs per job", flush=True)
    first, second = statistics.median(off), statistics.median(on)
    print(f"medians of {runs}: off {first:.2f} µs, 1 % {second:.2f} µs per job: {second / first - 1:+.1%}")


main()
