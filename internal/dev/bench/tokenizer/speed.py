"""Encoding speed on one core: Hugging Face's tokenizers, and ours, on the same corpus of distinct words.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install tokenizers==0.23.3
    python3 vocabularies.py DIR qwen3 llama3_1
    /tmp/reference/bin/python speed.py DIR [NAME...]

The corpus, DIR/corpus.txt, is the distinct words of the sources of Python's library, in order, with the white space before
them. Our benchmark clears its cache of words before each pass; that of the reference has 10,000 words, so a corpus of
300,000 distinct ones defeats it.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import sysconfig
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__


def corpus(path):
    if not path.exists():
        seen, out = set(), []
        for source in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("**/*.py")):
            if "site-packages" in source.parts:
                continue
            for space, word in re.findall(r"(\s*)(\S+)", source.read_text("utf-8", "ignore")):
                if word not in seen:
                    seen.add(word)
                    out.append((space[-4:] or " ") + word)
        path.write_text("".join(out), "utf-8")
    return path.read_text("utf-8")


def reference(folder, text):
    """MB/s of five passes, in parts of 64 KiB as a program that streams a file would."""
    tok = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    parts = [text[i : i + 65536] for i in range(0, len(text), 65536)]
    size, speeds, started = len(text.encode()), [], time.perf_counter()
    loading = time.perf_counter()
    tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    loading = time.perf_counter() - loading
    for _ in range(5):
        started = time.perf_counter()
        for part in parts:
            tok.encode(part, add_special_tokens=False)
        speeds.append(size / 1e6 / (time.perf_counter() - started))
    return statistics.median(speeds), loading


def main():
    folder, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or ["qwen3", "llama3_1"]
    text = corpus(folder / "corpus.txt")
    print(f"corpus: {len(text.encode()) / 1e6:.1f} MB")
    for name in names:
        speed, loading = reference(folder / name, text)
        print(f"tokenizers {tokenizers.__version__}, {name}: {speed:.1f} MB/s, loads in {1000 * loading:.0f} ms", flush=True)
    root = pathlib.Path(__file__).parents[4]
    env = os.environ | {"ART_TOKENIZER_DIR": str(folder), "ART_TOKENIZER_NAMES": " ".join(names), "GOMAXPROCS": "1"}
    subprocess.run(["go", "test", "-run", "^$", "-bench", "Reference", "-count", "5", "./tokenizer"], cwd=root, env=env, check=True)


if __name__ == "__main__":
    main()
