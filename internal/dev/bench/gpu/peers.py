"""Measures transformers and PEFT as the Go program measures ours: models of the same shapes with random weights.

    python peers.py --device cuda --shape qwen3-0.6b --batch 16 decode

Jobs are forward, prefill, decode, train and grpo. One line of JSON for each, with the versions. Decoding is measured with
generate, and with a loop of this file as well where a short trial finds that faster; rollouts take the faster one. Tried with
torch 2.15.0, transformers 5.24.0 and PEFT 0.21.2 on a CPU. A job that does not fit into memory is reported and has no figures.
"""

import argparse
import fcntl
import json
import sys
import time

try:
    import peft
    import torch
    import transformers
except ImportError as err:
    sys.exit(f"peers.py: {err}: it needs torch, transformers and peft")

CACHED = 128  # tokens that are cached when decoding begins
UPDATES = 4  # of a run of the job train
TRIAL = 32  # tokens after which generate and the loop are compared
COMMON = dict(rms_norm_eps=1e-6, rope_theta=1e6, max_position_embeddings=32768)


def qwen3(vocabulary, hidden, intermediate, layers, heads, kv, head):
    return transformers.Qwen3Config(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv, head_dim=head, tie_word_embeddings=True, **COMMON)


SHAPES = {
    "tiny": lambda: qwen3(512, 128, 384, 3, 4, 2, 32),
    "qwen3-0.6b": lambda: qwen3(151936, 1024, 3072, 28, 16, 8, 128),
    "qwen3-4b": lambda: qwen3(151936, 2560, 9728, 36, 32, 8, 128),
    "qwen2.5-7b": lambda: transformers.Qwen2Config(
        vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, tie_word_embeddings=False, **COMMON),
    "qwen2.5-14b": lambda: transformers.Qwen2Config(
        vocab_size=152064, hidden_size=5120, intermediate_size=13824, num_hidden_layers=48, num_attention_heads=40,
        num_key_value_heads=8, tie_word_embeddings=False, **COMMON),
    "llama-3-8b": lambda: transformers.LlamaConfig(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, tie_word_embeddings=False, **{**COMMON, "rms_norm_eps": 1e-5, "rope_theta": 5e5}),
}
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Subject:
    def __init__(self, args):
        self.args, self.lock = args, None
        torch.manual_seed(0)
        with torch.device(args.device):
            model = transformers.AutoModelForCausalLM.from_config(SHAPES[args.shape](), dtype=DTYPES[args.weights])
        self.model = model.eval().requires_grad_(False)
        model.generation_config.eos_token_id = None  # all tokens are made
        self.step = None  # (rollouts, training) of the last run of grpo, seconds

    def ids(self, tokens, start=0):
        a = self.args
        list_ = torch.arange(a.batch * tokens, device=a.device).reshape(a.batch, tokens)
        return (list_ * 104729 + start) % self.model.config.vocab_size

    def sync(self):
        if self.args.device == "cuda":
            torch.cuda.synchronize()

    def report(self, job, tokens, run, less=0.0, **more):
        """Times run, less a part of each. tokens are those of all sequences; more is written too."""
        runs, start, first = [], time.perf_counter(), None
        for _ in range(self.args.runs + 1):
            if first is not None and not runs:
                self.alone()
                start = time.perf_counter()
            taken = self.timed(run)
            if first is None:
                first = taken
                continue
            runs.append((taken - less, self.step))
            if time.perf_counter() - start > self.args.budget:
                break
        median, step = sorted(runs, key=lambda r: r[0])[len(runs) // 2]
        if step:
            more.update(rollouts_s=step[0], training_s=step[1])
        a = self.args
        line = dict(
            who="transformers", job=job, device=a.device, card=a.card, shape=a.shape, weights=a.weights, batch=a.batch, tokens=a.tokens,
            recompute=a.recompute, first_s=first, best_s=min(r[0] for r in runs), median_s=median, tokens_per_s=tokens / median,
            versions={m.__name__: m.__version__ for m in (torch, transformers, peft)}, attention=self.model.config._attn_implementation)
        print(json.dumps({**line, **more}), flush=True)

    def timed(self, run):
        self.sync()
        begin = time.perf_counter()
        run()
        self.sync()
        return time.perf_counter() - begin

    def alone(self):
        """Waits until no other program that was given the same file measures."""
        if self.args.lock and not self.lock:
            self.lock = open(self.args.lock, "w")  # closed when the program ends
            fcntl.flock(self.lock, fcntl.LOCK_EX)

    @torch.inference_mode()
    def forward(self):
        ids = self.ids(self.args.tokens)
        self.report("forward", ids.numel(), lambda: self.model(ids, use_cache=False, logits_to_keep=1).logits.float().cpu())

    @torch.inference_mode()
    def prefill(self):
        ids = self.ids(self.args.tokens)
        self.report("prefill", ids.numel(), lambda: self.model(ids, use_cache=True, logits_to_keep=1).logits.argmax(-1).cpu())

    def generate(self, ids, tokens):
        """transformers' own sampling of so many tokens, with its default cache. The result has the prompts too."""
        return self.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=0)

    def loop(self, ids, tokens):
        """The same with nothing but the model and a sample in each step."""
        out, made = self.model(ids, use_cache=True, logits_to_keep=1), [ids]
        for i in range(tokens):
            made.append(torch.multinomial(torch.softmax(out.logits[:, -1].float(), -1), 1))
            if i < tokens - 1:
                out = self.model(made[-1], past_key_values=out.past_key_values, use_cache=True)
        return torch.cat(made, 1)

    def loop_wins(self, ids):
        """Says whether the loop is faster, by a few tokens of each; their first run is not counted."""
        self.alone()
        taken = [min(self.timed(lambda: way(ids, TRIAL)) for _ in range(3)) for way in (self.generate, self.loop)]
        print(f"peers: {TRIAL} tokens: generate {taken[0]:.2f} s, loop {taken[1]:.2f} s", file=sys.stderr)
        return taken[1] < taken[0]

    @torch.inference_mode()
    def decode(self):
        """Tokens after the first one; the time of the prompt, with that one, is subtracted."""
        ids, a = self.ids(CACHED), self.args
        ways = [("generate", self.generate)]
        if self.loop_wins(ids):
            ways.append(("loop", self.loop))
        for how, way in ways:
            less = min(self.timed(lambda: way(ids, 1)) for _ in range(3))
            self.report("decode", a.batch * a.tokens, lambda: way(ids, a.tokens + 1), less, how=how)

    def adapter(self):
        self.model = peft.get_peft_model(self.model, peft.LoraConfig(r=16, lora_alpha=32, target_modules=TARGETS)).train()
        if self.args.recompute:
            self.model.enable_input_require_grads()
            self.model.gradient_checkpointing_enable()
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-5)

    def update(self, parts, prompt):
        """One update of the adapter, on parts [rows, tokens] of a batch of which all tokens after a prompt are trained on."""
        self.optimizer.zero_grad(set_to_none=True)
        for ids in parts:
            logits = self.model(ids[:, :-1], use_cache=False, logits_to_keep=ids.shape[1] - prompt).logits.float()
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, prompt:].flatten()).backward()
            del logits
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()

    def train(self):
        self.adapter()
        ids = self.ids(self.args.tokens + 1)

        def run():
            for _ in range(UPDATES):
                self.update([ids], 1)

        self.report("train", UPDATES * self.args.batch * self.args.tokens, run)

    def grpo(self):
        """Steps as in step.go. The loss is cross entropy, which costs as much as a loss of GRPO without a reference."""
        self.adapter()
        a = self.args
        prompts = self.ids(a.tokens)[: a.batch // 8].repeat_interleave(8, 0)
        self.model.eval()
        with torch.inference_mode():
            how, way = ("loop", self.loop) if self.loop_wins(prompts) else ("generate", self.generate)

        def rollouts():
            self.model.eval()
            with torch.inference_mode():
                made = way(prompts, a.tokens)
            self.model.train()
            return made.clone()  # which takes part in gradients

        def step():
            made = []
            sampled = self.timed(lambda: made.append(rollouts()))
            self.step = sampled, self.timed(lambda: self.update(made[0].split(8), a.tokens))

        self.report("grpo", a.batch * a.tokens, step, how=how, prompt=a.tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", default="tiny", choices=SHAPES)
    parser.add_argument("--weights", default="bfloat16", choices=DTYPES)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--lock", help="a file: programs that are given the same one measure one after the other")
    parser.add_argument("--card", default="", help="name of the GPU by nvidia-smi, for the table")
    parser.add_argument("--recompute", action="store_true", help="gradient checkpointing")
    parser.add_argument("job", choices=["forward", "prefill", "decode", "train", "grpo"])
    args = parser.parse_args()
    try:
        getattr(Subject(args), args.job)()
    except torch.OutOfMemoryError as err:
        sys.exit(f"peers.py: {args.shape}, {args.job}, {args.batch} x {args.tokens}: {err}")


if __name__ == "__main__":
    main()
