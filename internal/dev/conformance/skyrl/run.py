"""Runs backend/tinker against SkyRL's Tinker server on a CPU: python run.py [FLAGS OF go test]

    python3.12 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/skyrl/requirements.txt
    VENV/bin/python internal/dev/conformance/skyrl/run.py -v

The server, with its JAX backend, serves the built-in model from a folder of its own, without a network. The test,
TestSkyRL of backend/tinker, trains and samples there, and compares with backend/local. It takes minutes on two cores,
most of them for the compilation of each shape by JAX, and is not part of CI.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
BASE = "org/tiny"
BACKEND = {"max_lora_adapters": 16, "max_lora_rank": 8, "train_micro_batch_size": 4, "sample_max_num_sequences": 4}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """SkyRL's server in a folder, whose log is server.log there."""

    def __init__(self, folder):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(folder / "server.log", "w")
        bin = pathlib.Path(sys.executable).parent
        self.process = subprocess.Popen(  # the server reads the command of its parent, which has to be uv run
            [bin / "uv", "run", "--no-project", "--python", sys.executable, "-m", "skyrl.tinker.api",
             "--base-model", BASE, "--backend", "jax", "--backend-config", json.dumps(BACKEND),
             "--checkpoints-base", folder / "checkpoints", "--database-url", f"sqlite:///{folder / 'tinker.db'}",
             "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True, env={
                **os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "VIRTUAL_ENV": str(bin.parent),
                "UV_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), "JAX_PLATFORMS": "cpu"})

    def wait(self):
        """Waits until the server answers."""
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with status {self.process.returncode}")
            try:
                with urllib.request.urlopen(self.url + "/api/v1/healthz", timeout=5):
                    return
            except OSError:
                time.sleep(1)
        raise SystemExit("the server does not answer")

    def close(self):
        self.process.terminate()  # uv passes it on, and the server ends its engine
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
        self.log.close()


def main(flags):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / BASE).mkdir(parents=True)
        for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(REPOSITORY / "model" / "tiny" / file, folder / BASE / file)
        server = Server(folder)
        try:
            server.wait()
            status = subprocess.call(
                ["go", "test", "./backend/tinker", "-run", "^TestSkyRL", "-count=1", "-timeout", "60m", *flags],
                cwd=REPOSITORY, env={**os.environ, "ART_SKYRL_URL": server.url, "ART_SKYRL_BASE": BASE})
        finally:
            server.close()
            if log := os.environ.get("ART_SKYRL_LOG"):
                shutil.copy(folder / "server.log", log)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
