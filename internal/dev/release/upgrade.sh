#!/usr/bin/env bash
# Upgrades modules and says what that changes: parity with the references, bits of a training, speed. docs/dependencies.md
# tells how to read it.
#
#   internal/dev/release/upgrade.sh github.com/gomlx/gomlx@v0.28.8 github.com/gomlx/compute@v0.1.6
#
#   ART_UPGRADE_SKIP=speed   leaves the speed out, which takes 5 to 10 minutes of an idle machine
#
# The working tree must have no changes; what remains in it is the upgrade. Nothing is committed.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export GOFLAGS=-trimpath

[ $# -gt 0 ] || { echo "usage: upgrade.sh MODULE@VERSION..." >&2; exit 2; }
[ -z "$(git status --porcelain)" ] || { echo "upgrade: the working tree has changes; commit them first" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# state FOLDER stores a training of two steps and the command, as they are now.
state() {
	mkdir -p "$work/$1"
	go build -o "$work/$1/art" ./cmd/art
	go run ./internal/dev/cmd/goldenrun "$work/$1/runs/run" >/dev/null
	(cd "$work/$1/runs/run/runs/models/golden/checkpoints" && sha256sum ./*/*.safetensors) >"$work/$1/bits"
}

# parity compares with PyTorch, transformers and PEFT, whose results are stored, and one instruction set with another.
parity() {
	go test -short -count=1 -timeout 20m ./grpo/... ./lora ./model ./backend/device/... ./internal/engine ./internal/trainer
	ART_CPU=portable go test -short -count=1 -timeout 20m ./backend/device/cpu ./model ./internal/engine ./internal/trainer
}

state before
go get "$@"
for module in $(git ls-files '*go.mod' | xargs -n1 dirname); do
	(cd "$module" && go mod tidy)
done
go run ./internal/dev/cmd/notice -update NOTICE
state after
git --no-pager diff --stat

echo "== parity"
parity
echo "== bits of a training"
if cmp -s "$work/before/bits" "$work/after/bits"; then
	echo "equal"
else
	echo "DIFFERENT: say so in CHANGELOG.md, under Changed"
	diff "$work/before/bits" "$work/after/bits" || true
fi
echo "== speed"
if [ "${ART_UPGRADE_SKIP:-}" = speed ]; then
	echo "NOT MEASURED"
else
	go run ./internal/dev/cmd/benchhistory compare "$work/before/art" "$work/after/art"
fi
