"""Records how the wandb client uploads an artifact, against a server of this script:

    python3 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/publish/requirements-wandb.txt
    VENV/bin/python internal/dev/conformance/publish/record_wandb.py backend/publish/testdata

The recording is read by the tests of backend/publish, whose client must send the same about the artifact. The server
answers as much as the client needs; W&B itself was not reached.
"""

import gzip
import json
import os
import pathlib
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTITY = "team"


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    exchanges = []
    lock = threading.Lock()

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

    def serve(self):
        data = self.body()
        answer = {}
        with self.lock:
            if self.path == "/graphql":
                request = json.loads(data)
                answer = {"data": graphql(request, f"http://{self.headers['Host']}")}
            self.exchanges.append({
                "method": self.command, "path": self.path, "body": data.decode(), "answer": answer,
                "header": {k: v for k, v in self.headers.items() if k in ("Authorization", "Content-Type", "X-Stored")},
            })
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_HEAD = serve


def graphql(request, host):
    query, variables = request["query"], request.get("variables") or {}
    name = re.search(r"(?:mutation|query)\s+(\w+)", query)
    name = name[1] if name else ""
    upload = lambda what: {"uploadUrl": f"{host}/store/{what}", "uploadHeaders": ["X-Stored:yes"]}
    if name == "ArtifactType":
        return {"project": {"artifact": None}}  # there is none of this name yet
    if name == "FetchArtifactDigestAlgorithm":
        return {"project": {"artifactType": None}}
    if name == "CreateRunFiles":
        return {"createRunFiles": {"runID": "run-1", "uploadHeaders": [], "files": [
            {"name": f, "uploadUrl": f"{host}/files/{f}"} for f in variables["files"]]}}
    if name == "CreateArtifact":
        return {"createArtifact": {"artifact": {
            "id": "artifact-1", "state": "PENDING", "artifactSequence": {"id": "sequence-1", "latestArtifact": {"id": "artifact-0"}}}}}
    if name == "CreateArtifactManifest":
        return {"createArtifactManifest": {"artifactManifest": {
            "id": "manifest-1", "file": {"id": "file-1", **upload("manifest")}}}}
    if name == "UpdateArtifactManifest":
        return {"updateArtifactManifest": {"artifactManifest": {
            "id": "manifest-1", "file": {"id": "file-1", **upload("manifest")}}}}
    if name == "CreateArtifactFiles":
        files = variables.get("artifactFiles") or variables["input"]["artifactFiles"]
        return {"createArtifactFiles": {"files": {"edges": [{"node": {
            "id": f["name"], "name": f["name"], "storagePath": "path/" + f["name"], **upload(f["name"]),
            "uploadMultipartUrls": None, "artifact": {"id": "artifact-1"}}} for f in files]}}}
    if name == "CommitArtifact":
        return {"commitArtifact": {"artifact": {"id": "artifact-1", "digest": "d"}}}
    if "upsertBucket" in query:
        return {"upsertBucket": {"inserted": True, "bucket": {
            "id": variables["name"], "name": variables["name"], "displayName": variables.get("displayName"),
            "description": None, "config": variables.get("config"), "sweepName": None, "historyLineCount": 0,
            "project": {"id": "p", "name": variables.get("project"), "entity": {"id": "e", "name": ENTITY}}}}}
    server = {"features": [], "cliVersionInfo": {"max_cli_version": "9.9.9"}, "latestLocalVersionInfo": None}
    if "viewer" in query:
        viewer = {"id": "u", "username": "user", "entity": ENTITY, "email": "", "flags": "{}", "teams": {"edges": []}}
        return {"viewer": viewer, "serverInfo": server}
    if "serverInfo" in query:
        return {"serverInfo": server}
    return {}


def main(folder):
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{httpd.server_port}"
    work = tempfile.mkdtemp()
    os.environ.update({
        "WANDB_BASE_URL": f"http://{host}", "WANDB_API_KEY": "0" * 40, "HOME": work, "WANDB_DIR": work,
        "WANDB_CACHE_DIR": work, "WANDB_DATA_DIR": work, "WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true",
        "WANDB_CONSOLE": "off", "WANDB_X_DISABLE_STATS": "true", "WANDB_X_DISABLE_META": "true",
        "WANDB_DISABLE_GIT": "true", "WANDB_DISABLE_CODE": "true",
    })
    import wandb

    run = wandb.init(id="run-1", project="games", entity=ENTITY, settings=wandb.Settings(init_timeout=30))
    artifact = wandb.Artifact("player", type="lora", metadata={"step": 3})
    (pathlib.Path(work) / "adapter_config.json").write_text('{"r": 4}')
    (pathlib.Path(work) / "adapter_model.safetensors").write_bytes(bytes(range(97, 122)))
    artifact.add_file(os.path.join(work, "adapter_config.json"))
    artifact.add_file(os.path.join(work, "adapter_model.safetensors"))
    run.log_artifact(artifact, aliases=["latest", "step3"])
    run.finish()
    for e in Server.exchanges:
        if e["path"] == "/store/manifest":  # it names folders of this machine
            manifest = json.loads(e["body"])
            for entry in manifest["contents"].values():
                entry.pop("local_path")
            e["body"] = json.dumps(manifest)
    lines = [json.dumps(e, sort_keys=True).replace(host, "WANDB") for e in Server.exchanges]
    kept = [line for line in lines if "rtifact" in line or "/store/" in line]
    pathlib.Path(folder, "wandb.jsonl").write_text("\n".join(kept) + "\n")
    print(len(kept), "of", len(lines), "requests")


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
