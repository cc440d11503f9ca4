"""Measures a training step beside transformers + PEFT: LoRA of rank 8 on all layers, float32, random weights, loss on
all tokens, forward, backward and AdamW.

    python -m venv VENV && VENV/bin/pip install torch==2.15.0 transformers==4.57.1 peft==0.17.1
    go build -o /tmp/art ./cmd/art
    VENV/bin/python internal/dev/bench/trainbench/compare.py /tmp/art [--rounds 3] [--shape smollm2-135m]

Each program runs in a process of its own, in turn, with two threads. PyTorch computes the whole batch at once, or one
sequence after the other, which takes less memory. Prints a table: seconds of a step, the median of rounds, and the peak
of resident memory.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

# Rows and tokens of a step, and the shape as transformers has it: that of trainbench.go.
SHAPES = {
    "smollm2-135m": (8, 512, "Llama", dict(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=8192, rms_norm_eps=1e-5, rope_theta=1e5, tie_word_embeddings=True,
    )),
    "qwen3-0.6b": (2, 512, "Qwen3", dict(
        vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=40960, rms_norm_eps=1e-6, rope_theta=1e6,
        tie_word_embeddings=True,
    )),
}
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
OURS = "art"


def peer(shape, rows):
    """Prints the seconds of a step of transformers + PEFT that computes some rows at once."""
    import peft
    import torch
    import transformers

    torch.set_num_threads(2)
    torch.manual_seed(0)
    batch, length, kind, config = SHAPES[shape]
    config = getattr(transformers, kind + "Config")(**config, dtype=torch.float32)
    model = getattr(transformers, kind + "ForCausalLM")(config).requires_grad_(False)
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules=TARGETS)).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5)
    ids = torch.randint(config.vocab_size, (batch, length + 1))

    def step():
        for part in ids.split(rows):
            logits = model(part[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="sum")
            (loss / ids[:, 1:].numel()).backward()
        optimizer.step()
        optimizer.zero_grad()

    step()  # warms up
    begin = time.perf_counter()
    step()
    print(json.dumps({"seconds": time.perf_counter() - begin}))


def run(command):
    """Runs a program; its output, and its peak of memory in bytes."""
    environment = {**os.environ, "GOMAXPROCS": "2", "OMP_NUM_THREADS": "2"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command}: status {status}")
    return json.loads(out), usage.ru_maxrss * 1024


def programs(art, shape):
    rows, length, _, _ = SHAPES[shape]
    ours = [art, "debug", "bench", "train", "--json", "--only-shared", "--pairs", "1", "--shape", shape, "--groups", str(rows)]
    ours += ["--group-size", "1", "--shared-prompt", "0", "--answer", str(length)]
    theirs = [sys.executable, os.path.abspath(__file__), "--peer", shape]
    return {
        OURS: ours,
        OURS + ", layers computed again": [*ours, "--recompute"],
        "PyTorch, the batch at once": [*theirs, str(rows)],
        "PyTorch, one by one": [*theirs, "1"],
    }


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("art")
    p.add_argument("--shape", action="append", choices=SHAPES)
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    for shape in o.shape or SHAPES:
        measured = {}
        for _ in range(o.rounds):
            for name, command in programs(o.art, shape).items():
                out, peak = run(command)
                seconds = out["train"]["shared"]["median"] if "train" in out else out["seconds"]
                measured.setdefault(name, []).append((seconds, peak))
                print(f"  {name}: {seconds:.2f} s, {peak / 1e9:.2f} GB", file=sys.stderr, flush=True)
        print(f"{shape}, {SHAPES[shape][0]} x {SHAPES[shape][1]} tokens")
        for name, rounds in measured.items():
            ratios = [theirs[0] / ours[0] for theirs, ours in zip(rounds, measured[OURS])]
            print(f"{name:32} {statistics.median(r[0] for r in rounds):7.2f} s {max(r[1] for r in rounds) / 1e9:6.2f} GB"
                  f"  {statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f}) of ours", flush=True)


if sys.argv[1:2] == ["--peer"]:
    peer(sys.argv[2], int(sys.argv[3]))
else:
    main()
