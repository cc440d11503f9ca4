"""A short session of the Tinker SDK against a server: python session.py URL KEY BASE_MODEL

It uses what training programs use: training with each loss, a custom loss, samples, logprobs, saved weights, a resume,
and the lists of the REST client. The tests of backend/server/tinker run it with the versions in requirements-*.txt.
"""

import os
import sys

os.environ["TINKER_TELEMETRY"] = os.environ.get("TINKER_TELEMETRY", "1")

import tinker  # noqa: E402
from tinker import types  # noqa: E402

LOSSES = {
    "importance_sampling": {},
    "ppo": {"clip_low_threshold": 0.7, "clip_high_threshold": 1.3},
    "cispo": {"clip_low_threshold": 0.0, "clip_high_threshold": 4.0},
    "dro": {"beta": 0.05},
}


def supervised(ids):
    """A datum of plain text."""
    return types.Datum(
        model_input=types.ModelInput.from_ints(ids[:-1]),
        loss_fn_inputs={"target_tokens": ids[1:], "weights": [1.0] * (len(ids) - 1)},
    )


def policy(ids, logprobs, advantage):
    """A datum of a policy loss."""
    n = len(ids) - 1
    return types.Datum(
        model_input=types.ModelInput.from_ints(ids[:-1]),
        loss_fn_inputs={"target_tokens": ids[1:], "logprobs": logprobs, "advantages": [advantage] * n},
    )


def values(output, name="logprobs"):
    """The numbers of each datum."""
    return [list(o[name].data) for o in output.loss_fn_outputs]


def train(client):
    """Trains with each loss, and checks that supervised training lowers its loss."""
    text = [supervised([104, 101, 108, 108, 111]), supervised([98, 121, 101])]
    first = client.forward_backward(text, "cross_entropy")
    step = client.optim_step(types.AdamParams(learning_rate=1e-2, eps=1e-8))  # submitted before the first is polled
    before = first.result()
    assert [len(v) for v in values(before)] == [4, 2], values(before)
    assert before.metrics["loss:sum"] > 0, before.metrics
    step.result()
    after = client.forward(text, "cross_entropy").result()
    assert after.metrics["loss:sum"] < before.metrics["loss:sum"], (before.metrics, after.metrics)
    for loss, config in LOSSES.items():
        data = [policy([104, 105, 33], list(values(after)[1]), 0.5)]
        out = client.forward_backward(data, loss, loss_fn_config=config).result()
        assert len(values(out)[0]) == 2
    client.optim_step(types.AdamParams(learning_rate=1e-3)).result()


def custom(client):
    """Trains with a loss that is computed here, which needs torch."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return "without torch"
    text = [supervised([104, 101, 108, 108, 111])]
    out = client.forward_backward_custom(text, lambda data, lps: (-lps[0].sum(), {"own": 1.0})).result()
    client.optim_step(types.AdamParams(learning_rate=1e-3)).result()
    assert out.metrics["own"] == 1.0, out.metrics
    return "with torch"


def sample(sampler):
    """Samples, and checks what comes back."""
    prompt = types.ModelInput.from_ints([104, 105])
    params = types.SamplingParams(max_tokens=4, seed=1, temperature=1.0, stop=[46])
    one = sampler.sample(prompt=prompt, num_samples=3, sampling_params=params).result()
    two = sampler.sample(prompt=prompt, num_samples=3, sampling_params=params).result()
    assert len(one.sequences) == 3
    for a, b in zip(one.sequences, two.sequences):
        assert a.tokens == b.tokens and len(a.logprobs) == len(a.tokens), (a, b)
        assert a.stop_reason in ("stop", "length")
    logprobs = sampler.compute_logprobs(prompt).result()
    assert logprobs[0] is None and logprobs[1] < 0, logprobs


def saved(service, client):
    """Saves, lists and deletes weights, and resumes from them."""
    state = client.save_state("state-1").result().path
    weights = client.save_weights_for_sampler("state-1").result().path
    assert state.startswith("tinker://") and state.endswith("/weights/state-1"), state
    sample(service.create_sampling_client(model_path=weights))
    resumed = service.create_training_client_from_state(state)
    text = [supervised([104, 101, 108, 108, 111])]
    want = client.forward(text, "cross_entropy").result().metrics["loss:sum"]
    got = resumed.forward(text, "cross_entropy").result().metrics["loss:sum"]
    assert want == got, (want, got)
    client.load_state(state).result()
    try:
        client.save_state("state-1").result()
    except tinker.TinkerError as error:
        assert "already" in str(error), error
    else:
        raise AssertionError("a name was used twice")
    rest = service.create_rest_client()
    run = state.split("/")[2]
    runs = rest.list_training_runs().result().training_runs
    assert run in [r.training_run_id for r in runs], runs
    listed = [c.tinker_path for c in rest.list_checkpoints(run).result().checkpoints]
    assert sorted(listed) == sorted([state, weights]), listed
    assert rest.get_training_run(run).result().lora_rank == 8
    rest.delete_checkpoint_from_tinker_path(weights).result()
    listed = [c.tinker_path for c in rest.list_user_checkpoints().result().checkpoints]
    assert listed == [state], listed


def main(url, key, base):
    service = tinker.ServiceClient(base_url=url, api_key=key)
    names = [m.model_name for m in service.get_server_capabilities().supported_models]
    assert base in names, names
    client = service.create_lora_training_client(base_model=base, rank=8, seed=1)
    assert client.get_info().model_data.model_name == base
    train(client)
    how = custom(client)
    sample(client.save_weights_and_get_sampling_client())
    sample(service.create_sampling_client(base_model=base))
    saved(service, client)
    try:
        client.forward_backward([supervised([1, 2])], "unknown_loss").result()
    except tinker.TinkerError as error:
        assert "unknown_loss" in str(error), error
    except ValueError as error:
        assert "unknown_loss" in str(error), error
    print("tinker", tinker.__version__ if hasattr(tinker, "__version__") else "", how)
    print("all passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # without waiting for the threads of the SDK
