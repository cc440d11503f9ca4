"""Runs recipes of tinker-cookbook against `art serve --train`, by hand.

    python cookbook.py ART [MODEL [RATE STEPS [THRESHOLD]]]

    python3 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/tinker/requirements-cookbook.txt
    go build -o art ./cmd/art
    python3 internal/dev/bench/realmodels/fetch.py models smollm2
    VENV/bin/python internal/dev/conformance/tinker/cookbook.py ./art models/SmolLM2-135M-Instruct.Q4_1.gguf
    VENV/bin/python internal/dev/conformance/tinker/cookbook.py ./art                        # the built-in model
    VENV/bin/python internal/dev/conformance/tinker/cookbook.py ./art MODEL 0.001 20         # a pilot run of another model
    VENV/bin/python internal/dev/conformance/tinker/cookbook.py ./art MODEL 0.001 20 0.3     # what it has shown

MODEL is a folder or a GGUF file, with ChatML's tokens. The recipes are unmodified. They run in a folder that has the
tokenizer of the model under the name of one that the cookbook knows, and rows under the names of the data sets, so that
nothing is fetched. sl_loop and rl_loop make two steps in small batches. rl_loop is stopped after a saved state and
resumed. math_rl generates its arithmetic. Its learning rate, number of steps and threshold are chosen by a pilot run,
which prints the reward of each step. The mean of the last three rewards must exceed the threshold and the mean of the
first three. CHOSEN has them for SmolLM2-135M. The built-in model cannot add, so that its reward does not rise.

It needs torch, whose wheel is large, and is not part of CI. Where tml-renderers cannot be installed, which these
recipes do without: install the cookbook with --no-deps, and what is missing by name.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MODEL = "Qwen/Qwen3-4B-Instruct-2507"  # its renderer, qwen3_instruct, has the tokens of ChatML
PILOT = (1e-3, 30)  # learning rate and steps of a pilot run

# Learning rate, steps and threshold of math_rl, from a pilot run of a model. The reward is 1 for the right sum, and 0.1
# less for a reply that does not end: SmolLM2-135M has -0.07 at the start, and learns to end.
CHOSEN = {"SmolLM2-135M-Instruct.Q4_1.gguf": (3e-4, 8, -0.02)}


def write_rows(folder, name, rows, header=""):
    """Writes a data set where datasets.load_dataset(name) finds it from the folder."""
    path = folder / name
    path.mkdir(parents=True)
    for split in ("train", "test"):
        (path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if header:
        (path / "README.md").write_text(f"---\n{header}---\n")


def prepare(folder, art, model):
    """Lays out what the recipes load by name."""
    exported = folder / "exported"
    subprocess.run([art, "model", "export", "--dtype", "bfloat16", model, exported], check=True)
    (folder / MODEL).mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.move(exported / name, folder / MODEL / name)
    shutil.rmtree(exported)
    write_rows(folder, "HuggingFaceH4/no_robots", [
        {"messages": [{"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": str(n)}]}
        for n in range(16)])
    write_rows(folder, "openai/gsm8k", [
        {"question": f"What is {n} + 1?", "answer": f"One more.\n#### {n + 1}"} for n in range(16)], """configs:
- config_name: main
  data_files:
  - split: train
    path: train.jsonl
  - split: test
    path: test.jsonl
""")


class Server:
    """art serve in the folder, which ends with this process."""

    def __init__(self, art, folder, model):
        key = "tml-key-of-the-cookbook"
        self.process = subprocess.Popen(
            [art, "serve", "--child", "--train", f"{MODEL}={model}", "--addr", "127.0.0.1:0"],
            cwd=folder, env={**os.environ, "ART_KEY": key}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.environment = {
            **os.environ, "TINKER_API_KEY": key, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
            "HF_HOME": str(folder / "cache"), "TINKER_TELEMETRY": "0"}
        self.folder = folder

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def run(self, recipe, log, **options):
        """Runs a recipe, and returns the metrics of its steps."""
        arguments = [f"{key}={value}" for key, value in options.items()]
        path = self.folder / log
        subprocess.run(
            [sys.executable, "-m", f"tinker_cookbook.recipes.{recipe}", f"base_url={self.url}", f"model_name={MODEL}",
             f"log_path={path}", *arguments], cwd=self.folder, env=self.environment, check=True)
        return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def forget_end(log):
    """Drops the checkpoint of the end, as if the recipe had been stopped before: the one before it is resumed."""
    path = log / "checkpoints.jsonl"
    lines = [line for line in path.read_text().splitlines() if json.loads(line)["name"] != "final"]
    path.write_text("".join(line + "\n" for line in lines))


def rewards(rows):
    """The mean reward of each step, whatever prefix the recipe gives it."""
    found = []
    for row in rows:
        found += [value for key, value in sorted(row.items()) if key.endswith("reward/total") and "test" not in key][:1]
    return found


def main(art, model="tiny", *chosen):
    art = os.path.abspath(art)
    if model != "tiny":
        model = os.path.abspath(model)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder, art, model)
        server = Server(art, folder, model)
        try:
            check(server, folder, *(chosen or CHOSEN.get(os.path.basename(model), PILOT)))
        finally:
            server.close()


def check(server, folder, rate, steps, threshold=None):
    """Runs the recipes. Without a threshold math_rl is a pilot run."""
    supervised = server.run("sl_loop", "sl", max_steps=2, batch_size=4, max_length=128, lora_rank=4)
    assert len(supervised) == 2, supervised
    print("sl_loop passed")
    small = {"batch_size": 2, "group_size": 4, "max_tokens": 8, "lora_rank": 4, "save_every": 1,
             "loss_fn": "importance_sampling"}
    first = server.run("rl_loop", "rl", max_steps=2, **small)
    forget_end(folder / "rl")
    resumed = server.run("rl_loop", "rl", max_steps=3, **small)  # it finds its saved state in the folder
    assert [r["step"] for r in first] == [0, 1], first
    assert [r["step"] for r in resumed][2:] == [1, 2], resumed
    print("rl_loop passed, and was resumed")
    rows = server.run(
        "math_rl.train", "arithmetic", env="arithmetic", group_size=4, groups_per_batch=16, max_tokens=5, lora_rank=8,
        loss_fn="importance_sampling", learning_rate=rate, max_steps=steps, eval_every=0, save_every=10)
    curve = rewards(rows)
    print("rewards", [round(x, 3) for x in curve])
    assert len(curve) == int(steps), rows
    if threshold is None:
        print("this was the pilot run: choose RATE, STEPS and THRESHOLD by it")
        return
    last = sum(curve[-3:]) / 3
    assert last > float(threshold), (last, threshold)
    assert last > sum(curve[:3]) / 3, curve
    print("math_rl passed: the reward is", last)


if __name__ == "__main__":
    main(*sys.argv[1:])
