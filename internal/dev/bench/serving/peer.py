"""Measures transformers' generate for compare.py: greedy, float32, all requests as one batch of equally long prompts.

    python internal/dev/bench/serving/peer.py MODEL_FOLDER REQUESTS PROMPT TOKENS [--ids]

Prints one line of JSON: first_token_s, the time until all requests have their first token; tokens_per_s, those after the
first of each, by the time from there on; seconds, of the whole call. With --ids instead what it generates for the first
prompt.
"""

import argparse
import json
import random
import time

import torch
import transformers


class Clock(transformers.LogitsProcessor):
    """Notes when the logits of each step are there."""

    def __init__(self):
        self.times = []

    def __call__(self, ids, scores):
        self.times.append(time.perf_counter())
        return scores


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    for name in ("requests", "prompt", "tokens"):
        p.add_argument(name, type=int)
    p.add_argument("--ids", action="store_true")
    p.add_argument("--threads", type=int, default=2)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(o.model, dtype=torch.float32).eval()
    settings = dict(do_sample=False, max_new_tokens=o.tokens, min_new_tokens=o.tokens, pad_token_id=0)

    @torch.inference_mode()
    def once(seed):
        prompt = random.Random(seed).choices(range(900), k=o.requests * o.prompt)
        ids, clock = torch.tensor(prompt).reshape(o.requests, o.prompt), Clock()
        begin = time.perf_counter()
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), logits_processor=transformers.LogitsProcessorList([clock]), **settings
        )
        return begin, clock.times, time.perf_counter(), out[0, o.prompt :].tolist()

    if o.ids:
        return print(json.dumps(once(0)[3]))
    once(1)  # warms up
    begin, times, end, _ = once(2)
    rate = o.requests * (o.tokens - 1) / (times[-1] - times[0]) if o.tokens > 1 else None
    print(json.dumps({"first_token_s": times[0] - begin, "tokens_per_s": rate, "seconds": end - begin}))


main()
