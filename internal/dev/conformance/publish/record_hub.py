"""Records how huggingface_hub uploads a folder, against a server of this script:

    python3 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/publish/requirements-hub.txt
    VENV/bin/python internal/dev/conformance/publish/record_hub.py backend/publish/testdata

The recordings are read by the tests of backend/publish, whose client must send the same. hub-basic.jsonl has an upload in
one piece, hub-multipart.jsonl one in parts. The server answers as the client's source expects; the real hub was not
reached. Without HF_HUB_DISABLE_XET the client prefers another transfer, which the hub does not require.
"""

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"

CHUNK = 10  # of multipart uploads, in bytes


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    exchanges, parts = [], False

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def object(self, o, base):
        upload = {"href": f"{base}/store/{o['oid']}", "header": {}}
        if self.parts:
            count = -(-o["size"] // CHUNK)
            upload["href"] = f"{base}/complete/{o['oid']}"
            upload["header"] = {"chunk_size": str(CHUNK)}
            upload["header"] |= {f"{n:05}": f"{base}/store/{o['oid']}/{n}" for n in range(1, count + 1)}
        verify = {"href": f"{base}/verify"}
        return {"oid": o["oid"], "size": o["size"], "actions": {"upload": upload, "verify": verify}}

    def answer(self, body):
        base = f"http://{self.headers['Host']}"
        if self.path == "/api/repos/create":
            return {"url": f"{base}/team/player", "name": "team/player", "id": "1"}
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            mode = {True: "lfs", False: "regular"}
            return {"files": [
                {"path": f["path"], "uploadMode": mode[f["path"].endswith(".safetensors")], "shouldIgnore": False}
                for f in files]}
        if self.path.endswith("/objects/batch"):
            transfer = "multipart" if self.parts else "basic"
            return {"transfer": transfer, "objects": [self.object(o, base) for o in json.loads(body)["objects"]]}
        if "/commit/" in self.path:
            return {"success": True, "commitOid": "0" * 40, "commitUrl": f"{base}/team/player/commit/{'0' * 40}",
                    "hookOutput": ""}
        return {}

    def serve(self):
        body = self.body()
        answer = self.answer(body)
        keys = ("Authorization", "Content-Type", "Accept")
        self.exchanges.append({
            "method": self.command, "path": self.path, "body": body.decode("latin-1"), "answer": answer,
            "header": {key: self.headers[key] for key in keys if self.headers[key]},
        })
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.command == "PUT":
            self.send_header("ETag", '"' + hashlib.sha256(body).hexdigest()[:8] + '"')
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_HEAD = serve


def record(server, parts):
    """Uploads a folder, and returns what was sent, with another name for the server."""
    from huggingface_hub import HfApi

    Hub.exchanges, Hub.parts = [], parts
    url = f"http://127.0.0.1:{server.server_port}"
    api = HfApi(endpoint=url, token="token-of-a-test")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "adapter_config.json").write_text('{"r": 4}')
        (path / "adapter_model.safetensors").write_bytes(bytes(range(97, 122)))
        (path / "README.md").write_text("# player\n")
        api.create_repo("team/player", private=True, exist_ok=True)
        api.upload_folder(repo_id="team/player", folder_path=folder, commit_message="step 3")
    lines = [json.dumps(e, sort_keys=True) for e in Hub.exchanges]
    return "\n".join(lines).replace(f"127.0.0.1:{server.server_port}", "HUB") + "\n"


def main(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, parts in (("basic", False), ("multipart", True)):
        text = record(server, parts)
        pathlib.Path(folder, f"hub-{name}.jsonl").write_text(text)
        print(name, text.count("\n"), "requests")


if __name__ == "__main__":
    main(*sys.argv[1:])
