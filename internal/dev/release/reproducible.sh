#!/usr/bin/env bash
# Builds the command art of the last commit twice, in folders with names of different lengths, and compares the hashes.
#
#   internal/dev/release/reproducible.sh           seconds: both builds share what is compiled, and are linked apart
#   internal/dev/release/reproducible.sh --fresh   minutes: each build compiles everything, with an empty cache
set -euo pipefail
cd "$(dirname "$0")/../../.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# build FOLDER prints the hash of a build in a clone at FOLDER.
build() {
	git clone --quiet --shared . "$work/$1"
	[ "${fresh:-}" = "" ] || export GOCACHE=$work/cache-$1
	(cd "$work/$1" && CGO_ENABLED=0 GOFLAGS=-trimpath go build -o "$work/$1.bin" ./cmd/art)
	sha256sum <"$work/$1.bin"
}

[ "${1:-}" != --fresh ] || fresh=1
first=$(build a)
second=$(build a-folder-with-a-longer-name)
if [ "$first" != "$second" ]; then
	echo "two builds of the same commit differ: ${first%% *} and ${second%% *}" >&2
	exit 1
fi
echo "${first%% *} art of commit $(git rev-parse --short HEAD), $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH), -trimpath, without cgo"
