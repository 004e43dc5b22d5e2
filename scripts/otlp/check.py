"""Runs a node with a collector that parses what it gets with OpenTelemetry's own types, and checks the tree of spans."""

import base64
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
LIMIT = 60

spans, wrong, seen, calls = [], [], [], 0
changed = threading.Condition()


def to_protobuf_json(value):
    """OTLP writes ids in hexadecimal; protobuf's own JSON writes bytes in base64. Everything else is the same."""
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode()
            if key in ("traceId", "spanId", "parentSpanId")
            else to_protobuf_json(item)
            for key, item in value.items()
        }
    return [to_protobuf_json(item) for item in value] if isinstance(value, list) else value


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers["content-length"]))

    def log_message(self, *_):
        pass


class Collector(Quiet):
    def do_POST(self):
        body = self.body()
        with changed:
            try:
                assert self.path == "/v1/traces" and self.headers["content-type"] == "application/json"
                # Strict: unknown fields and wrong types are errors.
                request = json_format.ParseDict(to_protobuf_json(json.loads(body)), ExportTraceServiceRequest())
                for resource in request.resource_spans:
                    names = {fact.key: fact.value.string_value for fact in resource.resource.attributes}
                    assert names["service.name"] == "orders" and names["deployment.environment"] == "test", names
                    for scope in resource.scope_spans:
                        spans.extend(scope.spans)
            except Exception as error:  # Whatever it is, the check has failed.
                wrong.append(f"{type(error).__name__}: {error}")
            changed.notify_all()
        self.answer(200, json_format.MessageToJson(ExportTraceServiceResponse()).encode())


class Target(Quiet):
    """Fails the first call."""

    def do_POST(self):
        global calls
        self.body()
        with changed:
            calls += 1
            number = calls
            seen.append(self.headers["traceparent"])
        self.answer(503 if number == 1 else 200)


def listen(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def address(node):
    lines = []
    for line in node.stderr:
        lines.append(line)
        found = re.search(r"serves (http://[0-9.:]+)", line)
        if found:
            # A full pipe would block the node.
            threading.Thread(target=lambda: [None for _ in node.stderr], daemon=True).start()
            return found[1]
    sys.exit("the node did not start:\n" + "".join(lines))


def facts(span):
    return {fact.key: getattr(fact.value, fact.value.WhichOneof("value")) for fact in span.attributes}


def check():
    by_kind = {kind: [span for span in spans if span.kind == kind] for kind in (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CONSUMER, Span.SPAN_KIND_CLIENT)}
    (request,), attempts, outgoing = by_kind.values()
    assert all(span.trace_id.hex() == TRACE and span.flags == 1 for span in spans)
    assert request.parent_span_id.hex() == CALLER and request.name == "POST /api/v1/jobs"
    assert [span.status.code for span in attempts] == [Status.STATUS_CODE_ERROR, Status.STATUS_CODE_OK]
    assert [facts(span)["attempt"] for span in attempts] == [1, 2]
    for attempt, call in zip(attempts, outgoing, strict=True):
        assert attempt.parent_span_id == request.span_id and call.parent_span_id == attempt.span_id
        assert attempt.start_time_unix_nano <= call.start_time_unix_nano <= call.end_time_unix_nano <= attempt.end_time_unix_nano
    assert seen == [f"00-{TRACE}-{call.span_id.hex()}-01" for call in outgoing], seen
    assert abs(request.start_time_unix_nano / 1e9 - time.time()) < LIMIT * 2


def main():
    binary = os.path.abspath(sys.argv[1])
    collector, target = listen(Collector), listen(Target)
    # Settings of this shell are not part of the check.
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "OTEL_"))}
    variables |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
        "OTEL_SERVICE_NAME": "orders",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
    }
    with tempfile.TemporaryDirectory() as home:
        arguments = [binary, "serve", "--store", "sqlite:jobs.db", "--listen", "127.0.0.1:0", "--allow-private-targets"]
        node = subprocess.Popen(arguments, cwd=home, env=variables, stderr=subprocess.PIPE, text=True)
        try:
            job = {"http": {"url": target}, "retry": "fixed:base=100ms,jitter=none,retries=3"}
            headers = {"content-type": "application/json", "traceparent": f"00-{TRACE}-{CALLER}-01"}
            url = f"{address(node)}/api/v1/jobs"
            urllib.request.urlopen(urllib.request.Request(url, json.dumps(job).encode(), headers))
            with changed:
                changed.wait_for(lambda: wrong or len(spans) >= 5, LIMIT)
        finally:
            node.terminate()
            node.wait(LIMIT)
    if wrong or len(spans) != 5:
        sys.exit(f"{len(spans)} of 5 spans arrived; the official types refuse: {wrong}")
    check()
    print("five spans, accepted by OpenTelemetry's own types: a request, two attempts, two calls")


main()
