"""Uploads a folder with the real "wandb sync" to a server on this machine, lets the Python client log the same rows, and
prints what the server received of both as JSON.

    python3 -m venv VENV && VENV/bin/pip install wandb==0.31.0
    ART_WANDB_PYTHON=VENV/bin/python go test ./backend/track/wandb -run TestOffline_Synced

The server answers as much of W&B's API as the client needs.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTITY = "team"


class Run:
    def __init__(self):
        self.rows, self.summary, self.config, self.files, self.exit = {}, None, None, {}, None


runs = {}
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer({})

    def do_PUT(self):
        data = self.body()
        _, _, name, path = self.path.split("/", 3)
        with lock:
            runs[name].files[path] = data.decode()
        self.answer({})

    def do_POST(self):
        data = self.body()
        with lock:
            if self.path == "/graphql":
                self.answer({"data": graphql(json.loads(data))})
                return
            if self.path.endswith("/file_stream"):
                stream(runs[self.path.split("/")[4]], json.loads(data))
            self.answer({})


def graphql(request):
    query, variables = request["query"], request.get("variables") or {}
    if "upsertBucket" in query:
        run = runs.setdefault(variables["name"], Run())
        if variables.get("config"):
            run.config = json.loads(variables["config"])
        return {"upsertBucket": {"inserted": True, "bucket": {
            "id": variables["name"], "name": variables["name"], "displayName": variables.get("displayName"),
            "description": None, "config": variables.get("config"), "sweepName": None, "historyLineCount": 0,
            "project": {"id": "p", "name": variables.get("project"), "entity": {"id": "e", "name": ENTITY}},
        }}}
    server = {"features": [], "cliVersionInfo": {"max_cli_version": "9.9.9"}, "latestLocalVersionInfo": None}
    if "createRunFiles" in query:
        host = f"http://127.0.0.1:{httpd.server_port}"
        return {"createRunFiles": {"runID": variables["run"], "uploadHeaders": [], "files": [
            {"name": name, "uploadUrl": f"{host}/upload/{variables['run']}/{name}"} for name in variables["files"]
        ]}}
    if "viewer" in query:
        viewer = {"id": "u", "username": "user", "entity": ENTITY, "email": "", "flags": "{}", "teams": {"edges": []}}
        return {"viewer": viewer, "serverInfo": server}
    if "serverInfo" in query:
        return {"serverInfo": server}
    return {}


def stream(run, body):
    for name, part in (body.get("files") or {}).items():
        if name == "wandb-history.jsonl":
            for i, line in enumerate(part["content"]):
                run.rows[part["offset"] + i] = json.loads(line)
        if name == "wandb-summary.json":
            run.summary = json.loads(part["content"][-1])
    if body.get("complete"):
        run.exit = body["exitcode"]


httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
work = tempfile.mkdtemp()
environment = {
    **os.environ, "WANDB_BASE_URL": f"http://127.0.0.1:{httpd.server_port}", "WANDB_API_KEY": "0" * 40, "HOME": work,
    "WANDB_DIR": work, "WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off",
    "WANDB_X_DISABLE_STATS": "true", "WANDB_X_DISABLE_META": "true", "WANDB_DISABLE_GIT": "true",
}
wandb = pathlib.Path(sys.executable).with_name("wandb")
subprocess.run([wandb, "sync", sys.argv[1]], env=environment, check=True, stdout=sys.stderr, cwd=work)
(name,) = runs

CLIENT = """
import json, sys, wandb
rows, config = json.load(sys.stdin)
run = wandb.init(id="client", project="games", config=config)
run.define_metric("training_step")
for section in sorted({key.split("/")[0] for row in rows for key in row if "/" in key}):
    run.define_metric(section + "/*", step_metric="training_step")
for row in rows:
    run.log({k: float(v) if isinstance(v, str) else v for k, v in row.items() if not k.startswith("_")}, step=row["_step"])
run.finish()
"""


def own(values):
    return {k: v for k, v in values.items() if k not in ("_timestamp", "_runtime", "_wandb")}


def result(run):
    metrics = (run.config or {}).get("_wandb", {}).get("value", {}).get("m", [])
    files = {p: json.loads(t) for p, t in run.files.items() if p.startswith("media/")}
    return {
        "rows": [own(run.rows[i]) for i in sorted(run.rows)], "summary": own(run.summary or {}), "files": files,
        "config": {k: v["value"] for k, v in (run.config or {}).items() if k != "_wandb"}, "exit": run.exit,
        "metrics": [{k: v for k, v in m.items() if k != "7"} for m in metrics],
    }


synced = result(runs[name])
plain = [{k: v for k, v in row.items() if not isinstance(v, dict)} for row in synced["rows"]]
subprocess.run([sys.executable, "-c", CLIENT], env=environment, check=True, stdout=sys.stderr, cwd=work, text=True,
               input=json.dumps([plain, synced["config"]]))
print(json.dumps({"id": name, "synced": synced, "client": result(runs["client"])}, indent=1, sort_keys=True))
