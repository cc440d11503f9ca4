#!/usr/bin/env bash
# Prints the table of docs/dependencies.md: how many packages and modules an import brings, and how long a fresh build of it
# takes, with an empty cache and no network.
#
#   internal/dev/release/buildcost.sh           the counts alone: a second
#   internal/dev/release/buildcost.sh --time    also the times: minutes on an idle machine
#   internal/dev/release/buildcost.sh --check   whether the page has these counts
set -euo pipefail
cd "$(dirname "$0")/../../.."
export CGO_ENABLED=0 GOFLAGS=-trimpath GOOS=linux GOARCH=amd64

if [ "${1:-}" = --check ]; then
	table=$("internal/dev/release/${0##*/}")
	counts=$(cut -d'|' -f2-6 docs/dependencies.md)
	stale=$(cut -d'|' -f2-6 <<<"$table" | grep -vxF -- "$counts" || true)
	[ -z "$stale" ] || printf 'docs/dependencies.md lacks these counts; run internal/dev/release/buildcost.sh\n%s\n' "$stale"
	[ -z "$stale" ]
	exit
fi

# count FORMAT PACKAGE prints how many different lines go list prints for what a package needs.
count() { go list -deps -f "$1" "$2" | sed '/^$/d' | sort -u | wc -l | tr -d ' '; }

# seconds PACKAGE builds with an empty cache.
seconds() {
	local cache began
	cache=$(mktemp -d)
	began=$(date +%s)
	GOCACHE=$cache go build -o /dev/null "$1"
	echo $(($(date +%s) - began)) s
	rm -rf "$cache"
}

echo '| import | packages | of the standard library | of other modules | other modules | fresh build |'
echo '|---|---|---|---|---|---|'
for path in . ./backend/openai ./backend/rundir ./backend/server ./backend/local ./cmd/art; do
	all=$(count '{{.ImportPath}}' "$path")
	standard=$(count '{{if .Standard}}{{.ImportPath}}{{end}}' "$path")
	others=$(count '{{if not .Standard}}{{if not .Module.Main}}{{.ImportPath}}{{end}}{{end}}' "$path")
	modules=$(count '{{if not .Standard}}{{if not .Module.Main}}{{.Module.Path}}{{end}}{{end}}' "$path")
	took=""
	[ "${1:-}" != --time ] || took=$(seconds "$path")
	name=art${path#.}
	echo "| \`$name\` | $all | $standard | $others | $modules | $took |"
done
