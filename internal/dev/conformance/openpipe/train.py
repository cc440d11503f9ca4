"""openpipe-art's serverless client trains yes, no, maybe: python train.py ART [STEPS]

ART is the binary of cmd/art. The client is unmodified: base_url names `art serve --train tiny`. Replies are worth 0.5
(yes), 0.75 (no) and 1 (maybe). The mean reward must rise by a tenth at least, a stored step must answer by its artifact
name, checkpoints must be listed and deleted, and bad requests must be refused.
"""

import asyncio
import inspect
import os
import subprocess
import sys
import tempfile

os.environ.pop("WANDB_API_KEY", None)  # nothing is sent to W&B's own service

import art  # noqa: E402
import openai  # noqa: E402
from art.serverless import ServerlessBackend  # noqa: E402

KEY = "k" * 40
WORTH = {"yes": 0.5, "no": 0.75, "maybe": 1.0}
PROMPTS = [
    f"{verb} {words}"
    for verb in ("respond with", "just say")
    for words in ("yes, no or maybe", "no, maybe or yes", "maybe, yes or no")
]


def player(folder):
    """The model. Clients since 0.5.20 want the name of its run too."""
    known = inspect.signature(art.TrainableModel.__init__).parameters
    run = {"run_name": "player"} if "run_name" in known else {}
    return art.TrainableModel(name="player", project="games", base_model="tiny", base_path=folder, **run)


async def rollout(model, prompt, step=None):
    """One reply and its reward."""
    trajectory = art.Trajectory(messages_and_choices=[{"role": "user", "content": prompt}], reward=0.0)
    completion = await model.openai_client().chat.completions.create(
        model=model.get_inference_name(step), messages=trajectory.messages(), max_completion_tokens=8, logprobs=True)
    choice = completion.choices[0]
    trajectory.messages_and_choices.append(choice)
    trajectory.reward = WORTH.get((choice.message.content or "").strip(" .\n").lower(), 0.0)
    return trajectory


async def gather(model, step=None):
    """Groups of eight replies to each prompt, and the mean reward."""
    groups = await art.gather_trajectory_groups(
        art.TrajectoryGroup(rollout(model, prompt, step) for _ in range(8)) for prompt in PROMPTS)
    rewards = [t.reward for g in groups for t in g.trajectories]
    return groups, sum(rewards) / len(rewards)


async def train(url, steps, folder):
    """Trains, and checks what comes back."""
    backend = ServerlessBackend(api_key=KEY, base_url=url)
    model = player(folder)
    await model.register(backend)
    _, first = await gather(model)
    reward = first
    for step in range(steps):
        groups, reward = await gather(model)
        print(f"step {step}: reward {reward:.3f}", flush=True)
        result = await backend.train(model, groups, learning_rate=2e-3)
        assert result.step == step + 1, result
        trained = any(key.startswith("loss/") for key in result.metrics)
        assert trained or result.metrics["data/step_num_groups_trainable"] == 0, result.metrics  # all rewards may be 1
    _, last = await gather(model)
    _, before = await gather(model, step=0)
    print(f"reward {first:.3f} before, {last:.3f} after {steps} steps, {before:.3f} of step 0")
    assert last >= first + 0.1, "the reward did not rise"
    assert before <= last - 0.05, "step 0 is not answered by its own weights"
    await backend._delete_checkpoint_files(model, [steps])
    assert await backend._get_step(model) == steps
    again = player(folder)
    await again.register(backend)
    assert again.id == model.id
    try:
        await backend._client.models.create(project="games", name="player", base_model="other", return_existing=True)
    except openai.ConflictError:
        pass
    else:
        raise AssertionError("a model of another base was registered")
    await backend.delete(model)
    await backend.close()


def main():
    """Starts the server, trains, and stops it."""
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [os.path.abspath(sys.argv[1]), "serve", "--train", "tiny", "--addr", "127.0.0.1:0", "--context", "64"],
            cwd=folder, env={**os.environ, "ART_KEY": KEY}, stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split()[-1]
            asyncio.run(train(url, steps, folder))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
