"""Lets the Python client of OpenPipe report the completion of a report of ours, and prints what it sent as JSON, without
times. The service, and the model whose completion it is, are servers of this script.

    python3 -m venv VENV && VENV/bin/pip install openpipe==5.0.0
    ART_OPENPIPE_PYTHON=VENV/bin/python go test ./backend/track/openpipe -run TestTracker_Client
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open(sys.argv[1], "rb") as f:
    ours = json.load(f)
sent = []


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"status": "ok"}
        if self.path.endswith("/chat/completions"):
            answer = ours["respPayload"]
        else:
            sent.append({"path": self.path, "authorization": self.headers["Authorization"], "body": body})
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{httpd.server_port}"
os.environ.update(NO_PROXY="*", OPENPIPE_API_KEY="opk-1", OPENPIPE_BASE_URL=url + "/api/v1")

from openpipe import OpenAI  # reads the environment

known = {k: ours["reqPayload"][k] for k in ("model", "messages", "metadata", "temperature", "top_p", "seed", "max_tokens")}
client = OpenAI(api_key="sk-1", base_url=url + "/v1")
client.chat.completions.create(**known)
(report,) = sent
for key in ("requestedAt", "receivedAt"):
    assert isinstance(report["body"].pop(key), int)
print(json.dumps(report, indent=1, sort_keys=True))
