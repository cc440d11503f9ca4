"""Decodes a request for traces with opentelemetry-proto, and prints its spans as JSON, without ids and times.

    python3 -m venv VENV && VENV/bin/pip install opentelemetry-proto==1.39.0
    ART_OTLP_PYTHON=VENV/bin/python go test ./backend/track/otel -run TestTracker_Decoded
"""

import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

CHANGING = {"art.gather", "gen_ai.response.id"}


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(v) for v in value.array_value.values]
    return getattr(value, kind)


def attributes(items):
    return {a.key: plain(a.value) for a in items if a.key not in CHANGING}


request = ExportTraceServiceRequest()
with open(sys.argv[1], "rb") as f:
    request.ParseFromString(f.read())
(resource,) = request.resource_spans
(scope,) = resource.scope_spans
names = {span.span_id: span.name for span in scope.spans}
spans = [
    {
        "name": span.name,
        "kind": span.kind,
        "parent": names[span.parent_span_id] if span.parent_span_id else "",
        "status": span.status.code,
        "ordered": span.start_time_unix_nano <= span.end_time_unix_nano,
        "attributes": attributes(span.attributes),
        "events": [{"name": e.name, "attributes": attributes(e.attributes)} for e in span.events],
    }
    for span in scope.spans
]
print(json.dumps({
    "resource": attributes(resource.resource.attributes), "scope": scope.scope.name, "spans": spans,
}, indent=1, sort_keys=True))
