"""Writes tokenizer/testdata/recorded.json: some of the texts of cases.py, and for each vocabulary of a folder a digest of
how Hugging Face's tokenizers encodes each text. It is small enough to be committed; the vocabularies are not.

    python3 vocabularies.py DIR && /tmp/reference/bin/python cases.py DIR
    /tmp/reference/bin/python recorded.py DIR
    ART_TOKENIZER_DIR=DIR go test -run Recorded -v ./tokenizer
"""

import hashlib
import json
import pathlib
import sys

from vocabularies import NAMES

COUNT = 300


def digest(case):
    join = lambda ids: ",".join(map(str, ids))
    spans = ",".join(f"{a}-{b}" for a, b in case["offs"])
    text = "|".join([join(case["ids"]), join(case["sp"]), spans, case["dec"], case["decs"]])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def main():
    folder, digests, texts = pathlib.Path(sys.argv[1]), {}, None
    for name in NAMES:
        cases = json.loads((folder / name / "cases.json").read_text())["cases"][:COUNT]
        mine = [c["s"] for c in cases]
        texts = texts or mine
        assert texts == mine, name  # the first half of the texts is the same for all
        digests[name] = " ".join(map(digest, cases))
    target = pathlib.Path(__file__).resolve().parents[4] / "tokenizer" / "testdata" / "recorded.json"
    target.write_text(json.dumps({"texts": texts, "digests": digests}, indent=0) + "\n")


if __name__ == "__main__":
    main()
