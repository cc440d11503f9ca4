"""Reads with transformers and PEFT what this library has written, and compares.

    python3 read.py WRITTEN FOLDER...        (of record.py)

WRITTEN has for each folder one of the same name, with models, adapters for the model of the folder, and
logprobs.safetensors: what this library computes with each. For each a line of JSON says how far transformers is from
it, relative to the largest logit.
"""

import json, pathlib, sys

import peft, torch
from record import load, logits
from families import FAMILIES
from safetensors.torch import load_file

written = pathlib.Path(sys.argv[1])
for folder in map(pathlib.Path, sys.argv[2:]):
    record = json.loads((folder / "record.json").read_text())
    auto = next(f.auto for f in FAMILIES if f.name == record["family"])
    ours = load_file(written / folder.name / "logprobs.safetensors")
    for what in sorted(p.name for p in (written / folder.name).iterdir() if p.is_dir()):
        path = written / folder.name / what
        if what.startswith("lora"):
            model = peft.PeftModel.from_pretrained(load(folder, auto), str(path)).eval()
            file, state = load_file(path / "adapter_model.safetensors"), peft.get_peft_model_state_dict(
                model, save_embedding_layers=False
            )
            assert set(file) == set(state) and all(torch.equal(file[k], state[k]) for k in file), set(file) ^ set(state)
        else:
            model = load(path, auto)
        gap = 0.0
        with torch.no_grad():
            for i, ids in enumerate(record["rows"]):
                found = logits(model, ids)
                gap = max(
                    gap, ((found.double().log_softmax(-1) - ours[f"{what}.{i}"]).abs().max() / found.abs().max()).item()
                )
        print(json.dumps(dict(name=folder.name, what=what, gap=gap)), flush=True)
