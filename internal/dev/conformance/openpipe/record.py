"""Records what openpipe-art's serverless client sends: python record.py ART FILE

A proxy before `art serve` writes every request and its answer to FILE, as lines of JSON. The tests of
backend/server/wandb replay them.
"""

import asyncio
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

import art
from art.serverless import ServerlessBackend

from train import KEY, player, rollout


def proxy(upstream, lines):
    """Makes a handler that forwards to upstream, and keeps what passes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {k: self.headers[k] for k in ("Authorization", "Content-Type") if k in self.headers}
            request = urllib.request.Request(upstream + self.path, body or None, headers, method=self.command)
            try:
                answer = urllib.request.urlopen(request)
            except urllib.error.HTTPError as error:
                answer = error
            data = answer.read()
            lines.append({
                "method": self.command, "path": self.path, "body": json.loads(body) if body else None,
                "status": answer.status, "answer": json.loads(data)})
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = forward

    return Handler


async def session(url, folder):
    """A short session: two replies, one step, the lists, and the end."""
    backend = ServerlessBackend(api_key=KEY, base_url=url)
    model = player(folder)
    await model.register(backend)
    group = art.TrajectoryGroup(rollout(model, "say yes, no or maybe") for _ in range(2))
    groups = await art.gather_trajectory_groups([group])
    for reward, trajectory in enumerate(groups[0].trajectories):
        trajectory.reward = float(reward)
    await backend.train(model, groups, learning_rate=1e-3)
    await rollout(model, "say yes, no or maybe", step=0)
    await backend._delete_checkpoint_files(model, [1])
    await backend.delete(model)
    await backend.close()


def main():
    """Starts the server and the proxy."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [os.path.abspath(sys.argv[1]), "serve", "--train", "tiny", "--addr", "127.0.0.1:0", "--context", "64"],
            cwd=folder, env={**os.environ, "ART_KEY": KEY}, stdout=subprocess.PIPE, text=True)
        try:
            upstream = server.stdout.readline().split()[-1].removesuffix("/v1")
            front = http.server.ThreadingHTTPServer(("127.0.0.1", 0), proxy(upstream, lines))
            threading.Thread(target=front.serve_forever, daemon=True).start()
            asyncio.run(session(f"http://127.0.0.1:{front.server_port}/v1", folder))
        finally:
            server.terminate()
            server.wait()
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
