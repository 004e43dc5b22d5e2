"""At rest: webhook secrets and key rings are replaced while nodes run, and nothing sealed is found in clear."""
import base64
import hashlib
import hmac
import os
import pathlib
import subprocess

from nodes import POSTGRES, Node, Receiver, check, until

CANARY = "canary5d1f77ab"
SECRET = "whsec_" + base64.b64encode(f"{CANARY}-signing-secret-0001".encode()).decode()
# Of its own: the other part stores its secret in clear, and the write-ahead log of the server keeps it.
SEALED_SECRET = "whsec_" + base64.b64encode(f"{CANARY}-sealed-secret-00002".encode()).decode()


def signed_by(call: tuple[str, dict[str, str], bytes], secret: str) -> bool:
    _, headers, body = call
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    made = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}" in headers["webhook-signature"].split(" ")


def secrets(store: str) -> None:
    receiver = Receiver()
    with Node(store, "--allow-private-targets") as node:
        foreign, _ = node.make_token("--scope", "admin", "--tenant", "other")
        node.token, _ = node.make_token("--scope", "admin")
        node.api("PUT", "/tenants/acme", {"webhook": {"url": f"{receiver.url}/hook", "secret": SECRET}})
        job = {"tenantId": "acme", "http": {"url": f"{receiver.url}/job"}}
        waiting = node.api("POST", "/jobs", {**job, "delay": "6s"}).json()
        status = node.api("POST", "/tenants/acme/webhook/rotate", {}, token=foreign).status
        check(status in (403, 404), "another tenant's admin replaces the secret", status)
        rotated = node.api("POST", "/tenants/acme/webhook/rotate", {"overlap": "1h"}).json()
        node.api("POST", "/jobs", job)
        hooks = lambda: [call for call in receiver.calls if call[0] == "/hook"]  # noqa: E731
        until(lambda: len(hooks()) >= 2, 30)
        check(len(hooks()) == 2, "a new job and one stored before the rotation are delivered", len(hooks()))
        both = [signed_by(call, SECRET) and signed_by(call, rotated["secret"]) for call in hooks()]
        check(all(both), "during the overlap each is signed with both secrets", both)
        shown = node.api("GET", "/tenants/acme").body + node.api("GET", f"/jobs/{waiting['id']}").body
        hidden = SECRET.encode() not in shown and rotated["secret"].encode() not in shown
        check(hidden, "no answer shows a secret")
        node.api("POST", "/tenants/acme/webhook/rotate", {"from": SECRET, "overlap": "1s"})


def found(node: Node, text: str) -> list[str]:
    """Where a text is in clear: the database, its log, a backup, the node's log."""
    needle, places = text.encode(), []
    for path in node.home.rglob("*"):
        if path.is_file() and path.name != "ring.keys" and needle in path.read_bytes():
            places.append(path.name)
    if node.kind == "postgres":
        dump = subprocess.run(["pg_dump", POSTGRES, "-n", node.schema], capture_output=True, check=True).stdout
        places += ["pg_dump"] if needle in dump else []
        subprocess.run(["psql", POSTGRES, "-qc", "CHECKPOINT"], check=True)
        shown = subprocess.run(["psql", POSTGRES, "-Atc", "SHOW data_directory"], capture_output=True, text=True, check=True)
        data = pathlib.Path(shown.stdout.strip())
        if os.access(data / "base", os.R_OK):
            files = [path for folder in ("base", "pg_wal") for path in (data / folder).rglob("*") if path.is_file()]
            places += [str(path.relative_to(data)) for path in files if needle in path.read_bytes()]
            print(f"       searched pg_dump and {len(files)} files of the server, its write-ahead log too")
        else:
            print("       searched pg_dump; the server's files cannot be read by this user")
    return places


def keys(store: str) -> None:
    receiver = Receiver()
    mark = f"{CANARY}-{store}-{os.getpid()}"
    with Node(store, "--allow-private-targets") as node:
        ring = node.home / "ring.keys"

        def write_ring(*lines: str) -> None:
            ring.touch(mode=0o600)
            ring.write_text("\n".join(lines) + "\n")

        first, second = (node.run("keys", "generate", name).stdout.strip() for name in ("one", "two"))
        write_ring(first)
        node.stop()
        node.variables["WINDLASS_KEY_RING_FILE"] = str(ring)
        node.start()
        hook = {"url": f"{receiver.url}/hook?key={mark}", "secret": SEALED_SECRET}
        http = {"url": f"{receiver.url}/fail?key={mark}", "headers": {"x-key": mark}}
        node.api("POST", "/jobs", {"http": http, "payload": {"text": mark}, "retry": "once", "webhook": hook})
        kept = node.api("POST", "/jobs", {"kind": "kept", "payload": {"text": mark}}).json()
        taken = node.api("POST", "/jobs", {"kind": "taken", "queue": "work", "payload": {"text": mark}}).json()
        held = node.api("POST", "/leases", {"worker": "w", "queues": ["work"], "max": 1, "waitMs": 5000}).json()["jobs"][0]
        check(held["payload"] == {"text": mark}, "a worker gets the opened payload")
        item = {"id": held["id"], "attempt": held["attempt"], "lease": held["lease"], "result": {"text": mark}, "note": mark}
        node.api("POST", "/leases/complete", {"worker": "w", "results": [item]})
        node.api("POST", "/schedules", {"every": "1h", "job": {"kind": "a", "payload": {"text": mark}}})
        until(lambda: len(receiver.calls) >= 2, 20)
        check(len(receiver.calls) >= 2, "the call and its webhook were made", len(receiver.calls))
        if store == "sqlite":
            node.run("backup", str(node.home / "backup.db"))
        for what, text in [("the canary", mark), ("the webhook secret", SEALED_SECRET)]:
            places = found(node, text)
            check(places == [], f"{what} in database, write-ahead log, backup and logs", places)
        metrics = node.call("GET", "/metrics").body
        check(mark.encode() not in metrics, "the canary in metrics")

        def shown(job: dict) -> dict:
            return node.api("GET", f"/jobs/{job['id']}").json()

        write_ring(first, second)
        node.stop()
        node.start()
        write_ring(second, first)
        node.stop()
        node.start()
        rotated = node.run("keys", "rotate")
        check(rotated.returncode == 0, "keys rotate while the node runs", rotated.stdout.strip().replace("\n", "; ")[-200:])
        listed = node.run("keys", "list")
        print("       " + listed.stdout.strip().replace("\n", "\n       "))
        write_ring(second)
        node.stop()
        node.start()
        check(shown(kept)["payload"] == {"text": mark}, "with the new key alone, payloads open")
        check(shown(taken)["result"] == {"text": mark}, "and results")
        write_ring(first)
        node.stop()
        node.start(is_ready=False)
        answer = node.call("GET", "/readyz")
        check(answer.status == 503, "a node without the key is not ready", answer.body.decode()[:200])
        status = node.api("POST", "/jobs", {"kind": "a", "payload": {"text": mark}}).status
        check(status == 503, "and stores nothing", status)
        lease = node.api("POST", "/leases", {"worker": "w", "queues": ["default"], "max": 1})
        check(lease.status != 200 or lease.json()["jobs"] == [], "and leases nothing", lease.status)
        write_ring(second)
        node.stop()
        node.start()
        check(shown(kept)["payload"] == {"text": mark}, "nothing was lost: with the key, all of it opens")
        places = found(node, mark)
        check(places == [], "the canary after all that", places)
