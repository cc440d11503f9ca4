"""Lets the Python client of Langfuse make the observations and the scores of a rollout of ours, and prints what it sent
as JSON: where, by whom, and what, with names in place of ids and without times. The service is a server of this script.

    python3 -m venv VENV && VENV/bin/pip install langfuse==5.0.4
    ART_LANGFUSE_PYTHON=VENV/bin/python go test ./backend/track/otel -run TestLangfuse_Client
"""

import gzip
import json
import os
import sys
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open(sys.argv[1], "rb") as f:
    ours = json.load(f)
requests = []


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        requests.append((self.path, self.headers, data))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
os.environ["NO_PROXY"] = "*"

from langfuse import Langfuse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

client = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-2", base_url=f"http://127.0.0.1:{httpd.server_port}")
with ExitStack() as root:
    (first,) = [span for span in ours["spans"] if not span["parent"]]
    agent = root.enter_context(client.start_as_current_observation(name=first["name"], as_type=first["type"]))
    for span in ours["spans"]:
        if not span["parent"]:
            continue
        more = {"input": span["input"], "output": span["output"]}
        if span["type"] == "generation":
            more |= {"model": span["model"], "usage_details": span["usage"]}
        with client.start_as_current_observation(name=span["name"], as_type=span["type"], **more):
            pass
    trace, observation = agent.trace_id, agent.id
for score in ours["scores"]:
    client.create_score(name=score["name"], value=score["value"], comment=score["comment"], data_type="NUMERIC",
                        trace_id=trace, observation_id=observation, score_id=trace + "-" + score["name"])
client.flush()
client.shutdown()

out = {"spans": [], "scores": []}
names = {}


def read(spans):
    for span in spans:
        names[span.span_id.hex()] = span.name
    for span in spans:
        a = {x.key.removeprefix("langfuse.observation."): x.value.string_value for x in span.attributes}
        out["spans"].append({
            "name": span.name, "parent": names.get(span.parent_span_id.hex(), ""), "type": a["type"],
            "model": a.get("model.name", ""), "usage": json.loads(a.get("usage_details", "null")),
            "input": json.loads(a.get("input", "null")), "output": json.loads(a.get("output", "null")),
        })


for path, headers, data in requests:
    about = {"path": path, "authorization": headers["Authorization"]}
    if path.endswith("/traces"):
        message = ExportTraceServiceRequest()
        message.ParseFromString(data)
        out["traces"] = about | {"version": headers["x-langfuse-ingestion-version"]}
        read([s for r in message.resource_spans for scope in r.scope_spans for s in scope.spans])
        continue
    body = json.loads(data)
    for score in body if isinstance(body, list) else [body]:  # the service documents one, the client sends several
        assert score.pop("timestamp")
        score["observationId"] = names[score["observationId"]]
        score["id"], score["traceId"] = score["id"].replace(trace, "TRACE"), score["traceId"].replace(trace, "TRACE")
        out["scores"].append(about | {"body": score})
out["spans"].sort(key=lambda s: (s["name"], json.dumps(s["input"], sort_keys=True)))
out["scores"].sort(key=lambda s: s["body"]["name"])
print(json.dumps(out, indent=1, sort_keys=True))
