"""Runs a node with collectors that parse what they get with OpenTelemetry's own types, once for each protocol, and checks the
tree of spans and the metrics."""

import base64
import concurrent.futures
import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import grpc
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
LIMIT = 60


class World:
    """What arrived in one run."""

    def __init__(self):
        self.spans, self.readings, self.wrong, self.seen = [], [], [], []
        self.requests = 0
        self.changed = threading.Condition()

    def take(self, request):
        """Checks a request; answers whether it is accepted. The first one is not, so that it must be sent again."""
        with self.changed:
            self.requests += 1
            if self.requests == 1:
                return False
            for resource in getattr(request, "resource_spans", None) or request.resource_metrics:
                names = {fact.key: fact.value.string_value for fact in resource.resource.attributes}
                assert names["service.name"] == "orders" and names["deployment.environment"] == "test", names
                assert names["service.instance.id"], names
                for scope in getattr(resource, "scope_spans", None) or resource.scope_metrics:
                    assert scope.scope.name == "windlass"
                    if hasattr(scope, "spans"):
                        self.spans.extend(scope.spans)
                    else:
                        self.readings.append({metric.name: metric for metric in scope.metrics})
            self.changed.notify_all()
            return True

    def failed(self, error):
        with self.changed:
            self.wrong.append(f"{type(error).__name__}: {error}")
            self.changed.notify_all()


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

    def answer(self, status, body=b"", content_type="application/json"):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers["content-length"]))

    def log_message(self, *_):
        pass


def http_collector(world, content_type, authority):
    kinds = {
        "/v1/traces": (trace_service_pb2.ExportTraceServiceRequest, trace_service_pb2.ExportTraceServiceResponse),
        "/v1/metrics": (metrics_service_pb2.ExportMetricsServiceRequest, metrics_service_pb2.ExportMetricsServiceResponse),
    }

    class Collector(Quiet):
        def do_POST(self):
            body, is_json = self.body(), content_type == "application/json"
            request, answer = kinds[self.path]
            try:
                assert self.headers["content-type"] == content_type, self.headers["content-type"]
                # Strict: unknown fields and wrong types are errors.
                parsed = json_format.ParseDict(to_protobuf_json(json.loads(body)), request()) if is_json else known(request.FromString(body))
                accepted = world.take(parsed)
            except Exception as error:  # Whatever it is, the check has failed.
                world.failed(error)
                accepted = True
            text = json_format.MessageToJson(answer()).encode() if is_json else answer().SerializeToString()
            self.answer(200 if accepted else 503, text, content_type)

    return listen(Collector, authority)


def known(message):
    """A message without fields that its type does not have: written again without them, it must be as long."""
    size = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == size, "there are unknown fields"
    return message


def grpc_collector(world, authority):
    def take(request, context, answer):
        try:
            assert context.time_remaining() is not None and dict(context.invocation_metadata())["api-key"] == "s3cret"
            accepted = world.take(known(request))
        except Exception as error:
            world.failed(error)
            accepted = True
        if not accepted:
            context.abort(grpc.StatusCode.UNAVAILABLE, "come back later")
        return answer()

    class Traces(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request, context):
            return take(request, context, trace_service_pb2.ExportTraceServiceResponse)

    class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
        def Export(self, request, context):
            return take(request, context, metrics_service_pb2.ExportMetricsServiceResponse)

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), server)
    if authority:
        credentials = grpc.ssl_server_credentials([(authority.read("server.key"), authority.read("server.crt"))])
        port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    # The server ends when nothing refers to it.
    world.server = server
    return f"{'https' if authority else 'http'}://127.0.0.1:{port}"


def target(world):
    class Target(Quiet):
        """Fails the first call."""

        def do_POST(self):
            self.body()
            with world.changed:
                world.seen.append(self.headers["traceparent"])
                number = len(world.seen)
                world.changed.notify_all()
            self.answer(503 if number == 1 else 200)

    return listen(Target)


def listen(handler, authority=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.path("server.crt"), authority.path("server.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{'https' if authority else 'http'}://127.0.0.1:{server.server_address[1]}"


class Authority:
    """A certificate authority of our own, with a certificate for 127.0.0.1."""

    def __init__(self, home):
        self.home = home
        key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        self.openssl(f"req -x509 {key} -keyout ca.key -out ca.crt -days 30 -subj /CN=windlass-test")
        self.openssl(f"req {key} -keyout server.key -out server.csr -subj /CN=collector")
        with open(self.path("names"), "w") as names:
            names.write("subjectAltName=IP:127.0.0.1,DNS:localhost")
        self.openssl("x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out server.crt -extfile names")

    def openssl(self, arguments):
        subprocess.run(["openssl", *arguments.split()], cwd=self.home, check=True, stderr=subprocess.DEVNULL)

    def path(self, name):
        return os.path.join(self.home, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()


def address(node, lines):
    for line in node.stderr:
        lines.append(line)
        found = re.search(r"serves (http://[0-9.:]+)", line)
        if found:
            # A full pipe would block the node.
            threading.Thread(target=lambda: lines.extend(node.stderr), daemon=True).start()
            return found[1]
    sys.exit("the node did not start:\n" + "".join(lines))


def facts(of):
    return {fact.key: getattr(fact.value, fact.value.WhichOneof("value")) for fact in of.attributes}


def check_spans(world):
    kinds = (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CONSUMER, Span.SPAN_KIND_CLIENT)
    (request,), attempts, outgoing = [[span for span in world.spans if span.kind == kind] for kind in kinds]
    assert all(span.trace_id.hex() == TRACE and span.flags == 1 for span in world.spans)
    assert request.parent_span_id.hex() == CALLER and request.name == "POST /api/v1/jobs"
    assert [span.status.code for span in attempts] == [Status.STATUS_CODE_ERROR, Status.STATUS_CODE_OK]
    assert [facts(span)["attempt"] for span in attempts] == [1, 2]
    for attempt, call in zip(attempts, outgoing, strict=True):
        assert attempt.parent_span_id == request.span_id and call.parent_span_id == attempt.span_id
        assert attempt.start_time_unix_nano <= call.start_time_unix_nano <= call.end_time_unix_nano <= attempt.end_time_unix_nano
    assert world.seen == [f"00-{TRACE}-{call.span_id.hex()}-01" for call in outgoing], world.seen
    assert abs(request.start_time_unix_nano / 1e9 - time.time()) < LIMIT * 2


def total(reading, name, **labels):
    """The sum of a counter over all points that have these labels."""
    points = reading[name].sum.data_points if name in reading else []
    return sum(point.as_int for point in points if labels.items() <= facts(point).items())


def check_metrics(scraped, reading):
    """The same names as in the text that Prometheus scrapes, and the forms that the types of the metrics ask for."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", scraped, re.M))
    suffixes = {"counter": "_total", "info": "_info"}
    has_samples = {name for name in types if re.search(rf"^{name}[_{{ ]", scraped, re.M)}
    expected = {name + suffixes.get(types[name], ""): types[name] for name in has_samples}
    assert expected.keys() == reading.keys(), expected.keys() ^ reading.keys()
    forms = {"counter": "sum", "info": "gauge", "gauge": "gauge", "histogram": "histogram"}
    for name, metric in reading.items():
        assert metric.WhichOneof("data") == forms[expected[name]] and metric.description, name
        data = getattr(metric, metric.WhichOneof("data"))
        if forms[expected[name]] != "gauge":
            assert data.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE, name
            assert all(0 < point.start_time_unix_nano <= point.time_unix_nano for point in data.data_points), name
        assert all(abs(point.time_unix_nano / 1e9 - time.time()) < LIMIT * 2 for point in data.data_points), name
    assert all(reading[name].sum.is_monotonic for name in reading if forms[expected[name]] == "sum")
    for point in reading["windlass_run_seconds"].histogram.data_points:
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1 and point.count == sum(point.bucket_counts)
        assert list(point.explicit_bounds) == sorted(point.explicit_bounds) and point.HasField("sum")
    runs = [point.count for point in reading["windlass_run_seconds"].histogram.data_points]
    assert sum(runs) == 2 and reading["windlass_run_seconds"].unit == "s", runs
    assert [point.as_int for point in reading["windlass_store_up"].gauge.data_points] == [1]


def settings(endpoint, protocol, certificate):
    # Settings of this shell are not part of the check.
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "OTEL_"))}
    return variables | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_CERTIFICATE": certificate,
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=s3cret",
        "OTEL_SERVICE_NAME": "orders",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }


def collect(world, protocol, authority):
    """Starts a collector, with TLS if there is an authority; answers its address."""
    if protocol == "grpc":
        return grpc_collector(world, authority)
    return http_collector(world, "application/json" if protocol == "http/json" else "application/x-protobuf", authority)


def serve(binary, home, variables):
    arguments = [binary, "serve", "--store", "sqlite:jobs.db", "--listen", "127.0.0.1:0", "--allow-private-targets"]
    return subprocess.Popen(arguments, cwd=home, env=variables, stderr=subprocess.PIPE, text=True)


def enqueue(base, world):
    job = {"http": {"url": target(world)}, "retry": "fixed:base=100ms,jitter=none,retries=3"}
    headers = {"content-type": "application/json", "traceparent": f"00-{TRACE}-{CALLER}-01"}
    urllib.request.urlopen(urllib.request.Request(f"{base}/api/v1/jobs", json.dumps(job).encode(), headers))


def run(binary, protocol, authority=None):
    world, name = World(), f"{protocol} with TLS" if authority else protocol
    variables = settings(collect(world, protocol, authority), protocol, authority.path("ca.crt") if authority else "")

    def is_complete():
        is_counted = world.readings and total(world.readings[-1], "windlass_jobs_total", outcome="succeeded") == 1
        return world.wrong or len(world.spans) >= 5 and is_counted

    with tempfile.TemporaryDirectory() as home:
        node = serve(binary, home, variables)
        try:
            base = address(node, [])
            enqueue(base, world)
            with world.changed:
                world.changed.wait_for(is_complete, LIMIT)
            scraped = urllib.request.urlopen(f"{base}/metrics").read().decode()
        finally:
            node.terminate()
            node.wait(LIMIT)
    if world.wrong or not is_complete() or len(world.spans) != 5:
        sys.exit(f"{name}: {len(world.spans)} of 5 spans and {len(world.readings)} readings arrived; the official types refuse: {world.wrong}")
    check_spans(world)
    # The last one was sent when the node ended, after the text was scraped.
    check_metrics(scraped, world.readings[-1])
    print(f"{name}: five spans and {len(world.readings[-1])} metrics, accepted by OpenTelemetry's own types")


def run_untrusted(binary, protocol, authority):
    """A collector whose authority is unknown to the node gets nothing; jobs run, and the log says why, once for each signal."""
    world, lines = World(), []
    variables = settings(collect(world, protocol, authority), protocol, "")
    with tempfile.TemporaryDirectory() as home:
        node = serve(binary, home, variables)
        try:
            enqueue(address(node, lines), world)
            with world.changed:
                ran = world.changed.wait_for(lambda: len(world.seen) == 2, LIMIT)
            # Several readings and tries to send the spans.
            deadline = time.monotonic() + LIMIT
            while sum("cannot be exported" in line for line in lines) < 2 and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(3)
        finally:
            node.terminate()
            node.wait(LIMIT)
    warnings = [line for line in lines if "cannot be exported" in line]
    reason = "cannot be exported: its certificate was not issued by a trusted authority"
    assert ran and world.requests == 0, (ran, world.requests)
    assert len(warnings) == 2 and all(reason in line for line in warnings), warnings
    print(f"{protocol} with TLS, unknown authority: nothing is sent, jobs run, one warning for each signal")


def main():
    binary = os.path.abspath(sys.argv[1])
    for protocol in ("http/json", "http/protobuf", "grpc"):
        run(binary, protocol)
    with tempfile.TemporaryDirectory() as home:
        authority = Authority(home)
        for protocol in ("http/protobuf", "grpc"):
            run(binary, protocol, authority)
            run_untrusted(binary, protocol, authority)


main()
