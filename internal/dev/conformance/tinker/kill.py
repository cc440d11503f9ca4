"""Kills the server of a client again and again: python kill.py ART KILLS

ART is the binary of cmd/art. A client trains the built-in model with the Tinker SDK, once undisturbed, and again while
the server is killed at random moments and started again, until that was done KILLS times. All trainings must see the
same logprobs and samples, to the last bit.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import tinker
from tinker import types

ADDRESS = "127.0.0.1:18766"
STEPS = 8


class Server:
    """A server that can be killed and started again."""

    def __init__(self, art, folder):
        self.command = [art, "serve", "--train", "org/tiny=tiny", "--addr", ADDRESS, "--context", "64", "--slots", "2"]
        self.folder = folder
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, cwd=self.folder, env={**os.environ, "ART_KEY": "tml-key"}, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().startswith("training")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def train():
    """Trains, and returns what every step and the result show."""
    service = tinker.ServiceClient(base_url=f"http://{ADDRESS}", api_key="tml-key")
    client = service.create_lora_training_client(base_model="org/tiny", rank=4, seed=3).result()
    seen = []
    for step in range(STEPS):
        ids = [(7 * step + 3 * i) % 100 for i in range(12)]
        datum = types.Datum(
            model_input=types.ModelInput.from_ints(ids[:-1]),
            loss_fn_inputs={"target_tokens": ids[1:], "weights": [1.0] * 11})
        passes = [client.forward_backward([datum], "cross_entropy") for _ in range(2)]
        update = client.optim_step(types.AdamParams(learning_rate=1e-2))
        seen += [list(p.result().loss_fn_outputs[0]["logprobs"].data) for p in passes]
        update.result()
        sampler = client.save_weights_and_get_sampling_client()
        time.sleep(0.3)  # the server may be another one when it is asked
        params = types.SamplingParams(max_tokens=4, seed=step)
        reply = sampler.sample(types.ModelInput.from_ints(ids), 1, params).result().sequences[0]
        seen.append((list(reply.tokens), list(reply.logprobs)))
    return seen


def disturbed(art, moments, kills):
    """Trains while the server is killed at most so many times, and returns what is seen and how often it was."""
    with tempfile.TemporaryDirectory() as folder:
        server, done, killed = Server(art, folder), threading.Event(), 0

        def disturb():
            nonlocal killed
            while killed < kills and not done.wait(moments.uniform(0.1, 2.0)):
                server.kill()
                killed += 1
                server.start()

        thread = threading.Thread(target=disturb)
        thread.start()
        got = train()
        done.set()
        thread.join()
        server.kill()
    return got, killed


def main(art, kills):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(art, folder)
        want = train()
        server.kill()
    seed = int(time.time())
    print("seed", seed)
    moments = random.Random(seed)
    trainings, left = 0, int(kills)
    while left > 0:
        got, killed = disturbed(art, moments, left)
        assert got == want, (got, want)
        trainings, left = trainings + 1, left - killed
    print(f"killed {kills} times in {trainings} trainings; {len(want)} results of each are equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
