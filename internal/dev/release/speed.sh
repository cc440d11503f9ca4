#!/usr/bin/env bash
# Compares the speed of this checkout with that of the last release, in turns on this machine, and fails when it is slower
# beyond noise. The machine should do nothing else meanwhile: 5 to 10 minutes.
#
#   internal/dev/release/speed.sh [BASE [FLAGS of benchhistory compare...]]
#
# BASE is a commit or tag. Default: the last tag, and before the first one the commit in internal/dev/release/bench/baseline.
set -euo pipefail
cd "$(dirname "$0")/../../.."

base=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || cat internal/dev/release/bench/baseline)}
[ $# = 0 ] || shift
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null; rm -rf "$work"' EXIT

git worktree add --quiet --detach "$work/base" "$base"
export CGO_ENABLED=0 GOFLAGS=-trimpath
(cd "$work/base" && go build -o "$work/old" ./cmd/art)
go build -o "$work/new" ./cmd/art
echo "speed of $(git rev-parse --short HEAD) against $base:"
go run ./internal/dev/cmd/benchhistory compare "$@" "$work/old" "$work/new"
