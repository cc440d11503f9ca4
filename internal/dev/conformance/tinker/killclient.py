"""Kills a client of the Tinker SDK again and again: python killclient.py ART KILLS

ART is the binary of cmd/art. A client trains the built-in model and saves its state after each step. It is killed at
random moments and started again, loads the newest state that it knows of, and goes on. In the end it must have seen the
logprobs of a client that was not disturbed, to the last bit. It trains again until it was killed KILLS times.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

STEPS = 8


def client(url, file):
    """Trains from the newest state in the file."""
    import tinker
    from tinker import types

    file = pathlib.Path(file)
    state = json.loads(file.read_text()) if file.exists() else {"path": None, "seen": []}
    service = tinker.ServiceClient(base_url=url, api_key="tml-key")
    if state["path"] is None:
        training = service.create_lora_training_client(base_model="org/tiny", rank=4, seed=3)
    else:
        training = service.create_training_client_from_state_with_optimizer(state["path"])
    training = training.result()
    for step in range(len(state["seen"]), STEPS):
        ids = [(7 * step + 3 * i) % 100 for i in range(12)]
        datum = types.Datum(
            model_input=types.ModelInput.from_ints(ids[:-1]),
            loss_fn_inputs={"target_tokens": ids[1:], "weights": [1.0] * 11})
        result = training.forward_backward([datum], "cross_entropy")
        training.optim_step(types.AdamParams(learning_rate=1e-2)).result()
        state["seen"].append(list(result.result().loss_fn_outputs[0]["logprobs"].data))
        state["path"] = training.save_state(f"step-{step}").result().path
        new = file.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.rename(file)
    sys.stdout.flush()
    os._exit(0)


def train(url, folder, moments, kills):
    """Trains while the client is killed at most so many times; returns what it has seen and how often it was killed."""
    file, killed = folder / "state.json", 0
    while True:
        process = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "client", url, str(file)])
        try:
            status = process.wait(moments.uniform(0.5, 8) if killed < kills else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            continue
        assert status == 0, status
        return json.loads(file.read_text())["seen"], killed


def main(art, kills):
    seed = int(time.time())
    print("seed", seed)
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = subprocess.Popen(
            [os.path.abspath(art), "serve", "--child", "--train", "org/tiny=tiny", "--addr", "127.0.0.1:0", "--context",
             "64", "--slots", "2"],
            cwd=folder, env={**os.environ, "ART_KEY": "tml-key"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        url = json.loads(server.stdout.readline())["url"]
        trainings, left, want = 0, int(kills), None
        while left > 0:
            (folder / str(trainings)).mkdir()
            got, killed = train(url, folder / str(trainings), moments, left if want else 0)
            want = want or got
            assert got == want, (got, want)
            trainings, left = trainings + 1, left - killed
        server.stdin.close()
        server.wait()
    print(f"killed {kills} times in {trainings - 1} trainings; {len(want)} results of each are equal")


if __name__ == "__main__":
    client(*sys.argv[2:]) if sys.argv[1] == "client" else main(*sys.argv[1:])
