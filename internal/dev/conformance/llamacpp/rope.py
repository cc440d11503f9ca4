"""Computes with llama.cpp in float32 what a GGUF file with a scaling of RoPE makes of some ids. A test calls it:

    ART_LLAMACPP_PYTHON=VENV/bin/python go test ./model -run WriteGGUF_RopeInLlamaCpp -v     (VENV as in lora.py)

Standard input is a JSON object: model, a GGUF file; context; and ids. Standard output is the logits after each of them.
"""

import json
import os
import sys
import tempfile

from llama_cpp import Llama

from widen import widened

request = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as folder:
    wide = os.path.join(folder, "float32.gguf")
    widened(request["model"], wide)
    model = Llama(wide, n_ctx=request["context"], n_threads=1, logits_all=True, type_k=0, type_v=0, verbose=False)
    model.eval(request["ids"])
    print(json.dumps(model.scores[: model.n_tokens].tolist()))
    model.close()
