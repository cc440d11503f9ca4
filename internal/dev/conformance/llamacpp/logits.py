"""Computes logits with llama.cpp, in float32. TestGGUF of internal/dev/conformance/transformers calls it.

Standard input is a list of objects: model, a GGUF file, and rows of ids. For each a line of JSON has logits, one list for
each row, or the error.
"""

import json, os, sys, tempfile

import numpy
from llama_cpp import Llama
from widen import widened

FLOAT32 = 0  # of the cache
for request in json.load(sys.stdin):
    with tempfile.TemporaryDirectory() as folder:
        wide = os.path.join(folder, "float32.gguf")
        try:
            widened(request["model"], wide)
            model = Llama(wide, n_ctx=64, n_threads=1, logits_all=True, verbose=False, type_k=FLOAT32, type_v=FLOAT32)
            logits = []
            for ids in request["rows"]:
                model.reset()
                model.eval(ids)
                logits.append(numpy.asarray(model.scores[: len(ids)]).ravel().tolist())
            model.close()
            print(json.dumps(dict(logits=logits)), flush=True)
        except Exception as error:  # of whatever kind: a file that llama.cpp does not load
            print(json.dumps(dict(error=repr(error))), flush=True)
