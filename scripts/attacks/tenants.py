"""Tokens, streams, input and quotas: what one tenant can do to another, and what a caller can get in."""
import http.client
import socket
import threading
import time

from nodes import Node, check, until

DENIED = ["http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://0x7f.1/", "http://169.254.169.254/latest",
          "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://10.0.0.1./"]


def tokens(store: str) -> None:
    with Node(store) as node:
        admin, _ = node.make_token("--scope", "admin")
        acme, _ = node.make_token("--scope", "work", "--scope", "read", "--scope", "manage", "--tenant", "acme")
        queued, _ = node.make_token("--scope", "work", "--queue", "mine")
        enqueue, _ = node.make_token("--scope", "enqueue")
        check(node.api("GET", "/jobs").status == 401, "no token")
        job = node.api("POST", "/jobs", {"kind": "a", "tenantId": "other", "payload": {"secret": 1}}, token=admin).json()
        lease = {"worker": "w", "queues": ["default"], "max": 10}
        seen = node.api("POST", "/leases", lease, token=acme).json()["jobs"]
        check(seen == [], "a tenant's worker leases nothing of another tenant", seen)
        refused = node.api("POST", "/leases", lease, token=queued)
        check(refused.status == 403, "a worker of one queue leases from another", refused.status)
        held = node.api("POST", "/leases", lease, token=admin).json()["jobs"][0]
        item = {"id": held["id"], "attempt": held["attempt"], "lease": held["lease"]}
        for path, fields in [("complete", {}), ("fail", {"class": "X", "message": "no"}), ("extend", {})]:
            body = {"worker": "w", "results": [{**item, **fields}]}
            answer = node.api("POST", f"/leases/{path}", body, token=acme).json()["results"][0]
            check(answer["result"] == "stale", f"a foreign lease and its right id: {path}", answer["result"])
        for method, path in [("GET", ""), ("GET", "/history"), ("GET", "/why"), ("DELETE", ""), ("POST", "/retry")]:
            status = node.api(method, f"/jobs/{job['id']}{path}", token=acme).status
            check(status == 404, f"{method} of a foreign job{path}", status)
        stored = node.api("POST", "/jobs", {"kind": "a", "payload": {"secret": 1}}, token=enqueue).json()
        check(set(stored) == {"id", "state"}, "an enqueue token is answered id and state only", sorted(stored))
        for method, body in [("PATCH", {"priority": "high"}), ("DELETE", None)]:
            status = node.api(method, f"/jobs/{stored['id']}", body, token=enqueue).status
            check(status == 403, f"an enqueue token: {method} of a job", status)


def streams(store: str) -> None:
    with Node(store) as node:
        admin, _ = node.make_token("--scope", "admin")
        reader, reader_id = node.make_token("--scope", "read", "--tenant", "acme")
        worker, worker_id = node.make_token("--scope", "work", "--tenant", "acme")
        ended: dict[str, float] = {}

        def stream() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
            connection.request("GET", "/api/v1/events", headers={"authorization": f"Bearer {reader}"})
            answer = connection.getresponse()
            while answer.read1(4096):
                pass
            ended["stream"] = time.monotonic()

        def poll() -> None:
            body = {"worker": "w", "queues": ["empty"], "max": 1, "waitMs": 30_000}
            node.api("POST", "/leases", body, token=worker, timeout=40)
            ended["long poll"] = time.monotonic()

        threads = [threading.Thread(target=one, daemon=True) for one in (stream, poll)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        began = time.monotonic()
        for one in (reader_id, worker_id):
            node.run("token", "revoke", one)
        until(lambda: len(ended) == 2, 15)
        for what in ("stream", "long poll"):
            after = ended.get(what, float("inf")) - began
            check(after < 6, f"an open {what} of a revoked token ends", f"{after:.1f} s after the first of two commands")
        opened = []
        many, _ = node.make_token("--scope", "read", "--tenant", "acme")
        statuses = []
        for _ in range(22):
            one = http.client.HTTPConnection("127.0.0.1", node.port, timeout=10)
            one.request("GET", "/api/v1/events", headers={"authorization": f"Bearer {many}"})
            statuses.append(one.getresponse().status)
            opened.append(one)
        check(statuses.count(200) == 20 and statuses[-1] == 429, "22 streams of one token", f"{statuses.count(200)} open")
        check(node.api("GET", "/stats", token=admin).status == 200, "others are served")


def raw(node: Node, text: str) -> int:
    with socket.create_connection(("127.0.0.1", node.port), timeout=10) as one:
        one.sendall(text.encode())
        return int(one.recv(4096).split(b" ")[1])


def input(store: str) -> None:
    with Node(store) as node:
        for headers in ["Host: evil.example", "Host: [::1].evil.example", "Host: localhost\r\nHost: localhost",
                        "Host: localhost\r\nHost: evil.example", "Host: 127.0.0.1.evil.example"]:
            status = raw(node, f"GET /api/v1/jobs HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n")
            check(status in (400, 403, 421), headers.replace("\r\n", ", "), status)
        for url in DENIED:
            ways = [("/jobs", {"http": {"url": url}}), ("/jobs", {"kind": "a", "webhook": {"url": url}}),
                    ("/schedules", {"every": "1h", "job": {"http": {"url": url}}})]
            statuses = [node.api("POST", path, body).status for path, body in ways]
            statuses.append(node.api("PUT", "/tenants/acme", {"webhook": {"url": url}}).status)
            check(statuses == [422] * 4, f"{url} as job, webhook, schedule and tenant's webhook", statuses)
        for path in ("discard", "replay"):
            answer = node.api("POST", f"/dead-letters/{path}", {"filter": {}})
            check(answer.status == 422, f'{path} with {{"filter":{{}}}}', answer.json().get("detail"))
        url = "https://example.com/hook?token=canary77ab"
        job = node.api("POST", "/jobs", {"http": {"url": url}, "delay": "1h"})
        shown = node.api("GET", f"/jobs/{job.json()['id']}").body + node.call("GET", f"/jobs/{job.json()['id']}").body
        check(b"canary77ab" not in shown, "secrets in URL queries are masked in answers and pages")
        for path in ("/healthz", "/api/v1/jobs", "/", "/docs", "/metrics"):
            cached = node.call("GET", path).headers.get("cache-control", "")
            check("no-store" in cached, f"cache-control of {path}", cached)
        writes = [node.call("GET", "/readyz").status for _ in range(200)]
        check(set(writes) == {200}, "200 times /readyz", "the store is written to at most once a second (unit test)")


def quotas(store: str) -> None:
    with Node(store) as node:
        own, _ = node.make_token("--scope", "admin", "--tenant", "acme")
        node.token, _ = node.make_token("--scope", "admin")
        status = node.api("PUT", "/tenants/acme/quotas", {"waiting": 1000}, token=own).status
        check(status == 403, "a tenant's own admin raises its quotas", status)
        wrong = node.api("PUT", "/tenants/acme/quotas", {"httpConcurrency": 0})
        check(wrong.status == 422, "a wrong quota is refused", wrong.json()["errors"][0] if wrong.status == 422 else "")
        node.api("PUT", "/tenants/acme/quotas", {"waiting": 5, "streams": 2, "longPolls": 1})
        batch = {"jobs": [{"tenantId": "acme", "kind": "a"}] * 8, "atomic": False}
        answer = node.api("POST", "/jobs/batch", batch)
        check(answer.json()["created"] == 5, "8 jobs with a quota of 5 waiting", answer.json()["created"])
        answer = node.api("POST", "/jobs", {"tenantId": "acme", "kind": "a"})
        check((answer.status, bool(answer.headers["retry-after"])) == (429, True), "one more", answer.json()["detail"])
        check(node.api("POST", "/jobs", {"tenantId": "other", "kind": "a"}).status == 201, "another tenant stores")
        node.api("PUT", "/tenants/acme/quotas", {"enqueueRate": "5/s"})
        statuses = [node.api("POST", "/jobs", {"tenantId": "acme", "kind": "a"}).status for _ in range(30)]
        check(429 in statuses, "30 jobs at once with a rate of 5/s", f"{statuses.count(201)} stored")
        stats = node.api("GET", "/stats?tenant=acme").json()["quotas"]
        check(stats and stats[0]["refused"].get("enqueueRate", 0) > 0, "refusals are in stats", stats and stats[0]["refused"])
        metrics = node.call("GET", "/metrics").body
        check(b'windlass_quota_refusals_total{quota="enqueueRate"}' in metrics, "and in metrics")
        node.api("PUT", "/tenants/acme/quotas", {})
        statuses = {node.api("POST", "/jobs", {"tenantId": "acme", "kind": "a"}).status for _ in range(20)}
        check(statuses == {201}, "without quotas all are stored", statuses)
