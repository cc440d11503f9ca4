"""Stands in for the programs that compare.py measures: standin.py NAME ARGUMENTS. It knows the output of the real ones."""

import json
import pathlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BATCHED = {"n_kv_max": 2048, "pp": 64, "tg": 128, "pl": 1, "t_pp": 0.1, "speed_pp": 15.0, "t_tg": 1.0, "speed_tg": 20.0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply({})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/completions":
            assert body["min_tokens"] == body["max_tokens"], body
            return self.reply({"choices": [{"token_ids": [1] * body["max_tokens"]}]})
        assert self.path == "/completion" and body["ignore_eos"], body
        self.reply({"tokens": [1] * body["n_predict"]})

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256  # all agents connect at once


def python(args):
    if args[0].endswith("models.py"):
        return pathlib.Path(args[1], args[2] + ".gguf").touch()
    requests, prompt, tokens = map(int, args[2:5])
    if args[5:] == ["--ids"]:
        return print(json.dumps([1, 1] + [0] * (tokens - 2)))
    print(json.dumps({"first_token_s": 0.5, "tokens_per_s": 10.0, "seconds": 2.0}))


def main():
    name, args = sys.argv[1], sys.argv[2:]
    if name == "python":
        return python(args)
    if args[0] == "bench":
        result = {"name": "x", "tokens_per_s": 30.0, "first_token_s": 0.5}
        return print(json.dumps({"machine": {}, "results": [result]}))
    if name == "llama-batched-bench":
        return print("main: n_kv_max = 2048", json.dumps(BATCHED), sep="\n")
    flag = "--addr" if name == "art" else "--port"
    port = int(args[args.index(flag) + 1].split(":")[-1])
    Server(("127.0.0.1", port), Handler).serve_forever()


main()
