"""Writes runs of OpenPipe's ART, by openpipe-art itself, for the tests of internal/migrate.

    python3.11 internal/migrate/testdata/write_runs.py VENVS internal/migrate/testdata

VENVS is a folder outside of the repository for a virtual environment a version; the packages are pinned below. ART 0.3
and 0.4 write a run's files in a backend that needs a GPU; so the trajectories are written by their own functions, and
the line of history.jsonl has the form of LocalBackend._log_metrics. ART 0.5 writes all of it by Model.log.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest.mock

OPENAI = "openai==1.99.1"
VERSIONS = {
    "0.3.13": [OPENAI, "pyyaml==6.0.3", "tqdm==4.67.1", "aiohttp==3.13.2", "fastapi==0.121.3"],
    "0.4.12": [OPENAI, "pyyaml==6.0.3", "tqdm==4.67.1", "litellm==1.74.1"],
    "0.5.18": ["openai==2.14.0", "pyyaml==6.0.3", "litellm==1.82.0", "polars==1.36.1", "tblib==3.2.2",
               "setproctitle==1.3.7", "nest-asyncio==1.6.0", "python-dotenv==1.2.1", "pyarrow==21.0.0",
               "numpy==2.3.5"],
}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def choice(content, calls=None):
    from openai.types.chat.chat_completion import Choice

    message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    logprob = {"token": "token_id:7", "bytes": None, "logprob": -0.25, "top_logprobs": []}
    return Choice(index=0, finish_reason="tool_calls" if calls else "stop", message=message,
                  logprobs={"content": [logprob], "refusal": None})


def groups(art, version):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is at x?"},
                choice(None, [call]), {"role": "tool", "tool_call_id": "c1", "content": "a lamp"},
                choice("A lamp – yes: 1\n2")]
    more = {}
    if version >= "0.4":
        from art.trajectories import History

        inner = [{"role": "user", "content": "Sub"}, choice("Yes")]
        more = {"tools": TOOLS, "additional_histories": [History(messages_and_choices=inner)]}
    first = art.Trajectory(messages_and_choices=messages, reward=0.75, metrics={"right": True, "turns": 2},
                           metadata={"seed": 3, "day": "2025-01-02"}, logs=["first line"], **more)
    second = art.Trajectory(messages_and_choices=[{"role": "user", "content": "Hello"}, choice("Hi")], reward=-1.0)
    return [art.TrajectoryGroup([first, second, ValueError("no")]), art.TrajectoryGroup([second])]


def write(version, folder):
    """Runs in the virtual environment of a version."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # stay offline
    if version < "0.5":  # it imports them for annotations and a backend that is not used
        for name in ("torch", "transformers", "transformers.debug_utils", "transformers.trainer_utils",
                     "transformers.training_args"):
            sys.modules[name] = unittest.mock.MagicMock()
    import art

    made = groups(art, version)
    if version >= "0.5":
        import asyncio

        model = art.Model(name="agent", project="proj", base_path=folder + "/.art")
        asyncio.run(model.log(made, split="val", step=2))
        run = pathlib.Path(folder, ".art/proj/models/agent")
        run.rename(pathlib.Path(folder, "run"))
        return
    from art.utils.trajectory_logging import serialize_trajectory_groups

    ending = "yaml" if version < "0.4" else "jsonl"
    path = pathlib.Path(folder, "run/trajectories/val")
    path.mkdir(parents=True)
    (path / f"0002.{ending}").write_text(serialize_trajectory_groups(made))
    line = {"val/reward": -0.4166, "step": 2, "recorded_at": "2025-01-02T03:04:05"}
    pathlib.Path(folder, "run/history.jsonl").write_text(json.dumps(line) + "\n")


def main(venvs, testdata):
    for version, packages in VERSIONS.items():
        python = pathlib.Path(venvs, "v" + version, "bin/python")
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", f"openpipe-art=={version}"], check=True)
            subprocess.run([*pip, *packages], check=True)
        folder = pathlib.Path(testdata, "art-" + version)
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir()
        subprocess.run([python, __file__, "--write", version, folder.resolve()], check=True)
        subprocess.run(["rm", "-rf", folder / ".art"], check=True)


if sys.argv[1] == "--write":
    write(*sys.argv[2:])
else:
    main(*sys.argv[1:])
