"""Lets the Python client of Weave make the calls and the feedback of a rollout of ours, and prints what it sent as JSON:
by whom, and what, with names in place of ids and without times. The services are a server of this script.

    python3 -m venv VENV && VENV/bin/pip install weave==0.54.0
    ART_WEAVE_PYTHON=VENV/bin/python go test ./backend/track/otel -run TestWeave_Client
"""

import contextlib
import gzip
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open(sys.argv[1], "rb") as f:
    ours = json.load(f)
requests = []
ANSWERS = {
    "/server_info": {"min_required_weave_python_version": "0.0.1"},
    "/graphql": {"data": {
        "viewer": {"username": "user", "defaultEntity": {"name": "team"}}, "project": {"name": "games"},
    }},
    "/obj/create": {"digest": "d"}, "/file/create": {"digest": "d"},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        requests.append((self.path, self.headers, data))
        self.answer()

    def answer(self):
        data = json.dumps(ANSWERS.get(self.path, {})).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{httpd.server_port}"
os.environ.update(NO_PROXY="*", WANDB_BASE_URL=url, WF_TRACE_SERVER_URL=url, WANDB_API_KEY="0" * 40,
                  HOME=tempfile.mkdtemp(), WEAVE_PRINT_CALL_LINK="false")

import weave

with contextlib.redirect_stdout(sys.stderr):
    client = weave.init("team/games")
(first,) = [span for span in ours["spans"] if not span["parent"]]
agent = client.create_call(first["name"], {"input": None}, display_name=first["name"])
for span in ours["spans"]:
    if span["parent"]:
        call = client.create_call(span["name"], {"input": span["input"]}, parent=agent, display_name=span["name"])
        client.finish_call(call, output=span["output"])
client.finish_call(agent)
for score in ours["scores"]:
    payload = {"value": score["value"]}
    if score["comment"]:
        payload["explanation"] = score["comment"]
    agent.feedback.add(score["name"], payload)
client.flush()

out = {"spans": [], "scores": []}
calls, feedback = [], []
for path, headers, data in requests:
    if path.endswith("/calls/complete"):
        calls += json.loads(data)["batch"]
        out["traces"] = {"authorization": headers["Authorization"]}
    if path == "/feedback/batch/create":  # the service documents /feedback/create for one
        feedback += [(headers["Authorization"], body) for body in json.loads(data)["batch"]]
names = {call["id"]: call["display_name"] for call in calls}
for call in calls:
    out["spans"].append({
        "name": call["display_name"], "parent": names.get(call["parent_id"], ""), "input": call["inputs"]["input"],
        "output": call["output"],
    })
for authorization, body in feedback:
    prefix, _, id = body["weave_ref"].rpartition("/")
    body["weave_ref"] = prefix + "/" + names[id]
    del body["id"]
    body = {k: v for k, v in body.items() if v not in ("", [], {}, "UNSET")}
    out["scores"].append({"path": "/feedback/create", "authorization": authorization, "body": body})
out["spans"].sort(key=lambda s: (s["name"], json.dumps(s["input"], sort_keys=True)))
out["scores"].sort(key=lambda s: s["body"]["feedback_type"])
print(json.dumps(out, indent=1, sort_keys=True))
