"""Measures PyTorch as bench_test.go measures ours: a model of Qwen3-0.6B's shape with random float32 weights.

    python -m venv /somewhere && . /somewhere/bin/activate
    pip install torch==2.15.0 transformers==4.57.1 peft==0.17.1
    python internal/dev/bench/model/peers.py [--threads 2] [--runs 3] [forward train decode]

For correct peaks of memory, name one measurement per process. Prints one line of JSON for each.
"""

import argparse
import json
import resource
import time

import peft
import torch
import transformers

SHAPE = dict(
    vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
    num_key_value_heads=8, head_dim=128, max_position_embeddings=40960, rms_norm_eps=1e-6, rope_theta=1e6,
    tie_word_embeddings=True,
)
TOKENS, CACHED = 256, 256


def build():
    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SHAPE, dtype=torch.float32))
    return model.eval().requires_grad_(False)


def measure(run, runs):
    run()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return {"best_s": min(times), "median_s": sorted(times)[len(times) // 2]}


def forward(runs):
    model, ids = build(), torch.arange(TOKENS)[None] * 100

    @torch.inference_mode()
    def run():
        model(ids, use_cache=False).logits

    return [("forward/1x256", measure(run, runs))]


def train(runs):
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = peft.get_peft_model(build(), peft.LoraConfig(r=8, lora_alpha=16, target_modules=targets))
    ids = torch.arange(TOKENS)[None] * 100

    def run():
        model.zero_grad(set_to_none=True)
        logits = model(ids, use_cache=False).logits
        logprobs = torch.log_softmax(logits, -1).gather(-1, ids[..., None])
        (-logprobs.sum()).backward()

    return [("train/1x256", measure(run, runs))]


def decode(runs):
    model, out = build(), []
    for batch in (1, 8):
        with torch.inference_mode():
            ids = torch.arange(CACHED)[None].repeat(batch, 1) * 100
            cache = model(ids, use_cache=True).past_key_values

            def run():
                cache.crop(CACHED)
                torch.log_softmax(model(ids[:, :1], past_key_values=cache, use_cache=True).logits, -1)

            result = measure(run, runs)
        out.append((f"decode/{batch}", result | {"tokens_per_s": batch / result["best_s"]}))
    return out


def main():
    jobs = dict(forward=forward, train=train, decode=decode)
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("names", nargs="*", default=list(jobs))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, peft)} | {"threads": args.threads}
    for name in args.names:
        for job, result in jobs[name](args.runs):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(json.dumps({"name": job} | result | {"peak_gb": peak} | versions), flush=True)


if __name__ == "__main__":
    main()
