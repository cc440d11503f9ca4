#!/usr/bin/env bash
# Checks that a version may be released, and makes what is published with it. It tags nothing: it prints the commands.
#
#   internal/dev/release/release.sh v0.1.0
#
#   ART_RELEASE_BASE   commit or tag to compare the speed with; default: the last tag, and before the first the commit in
#                      internal/dev/release/bench/baseline
#   ART_RELEASE_SKIP   checks to leave out, separated by spaces: ci, fresh (a build with an empty cache), speed. What was
#                      left out is printed.
#
#   ART_RELEASE_PLATFORMS   what to build for, GOOS/GOARCH separated by spaces, to try the script
#
# docs/versioning.md says what to prepare before. Output: .ci/out/release/VERSION.
set -euo pipefail
cd "$(dirname "$0")/../../.."

SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
PLATFORMS=${ART_RELEASE_PLATFORMS:-"linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"}
export GOFLAGS=-trimpath

version=${1:?usage: release.sh vX.Y.Z}
out=.ci/out/release/$version
skipped=""

fail() {
	printf 'release: %s\n' "$1" >&2
	exit 1
}

# skips CHECK reports whether a check is to be left out.
skips() {
	case " ${ART_RELEASE_SKIP:-} " in
	*" $1 "*) skipped+=" $1" ;;
	*) return 1 ;;
	esac
}

# modules prints the folders of nested modules that are published with the root.
modules() {
	git ls-files '*/go.mod' | grep -vE '^(internal|examples)/' | xargs -n1 dirname
}

# section prints the section of the version in the changelog, without its head.
section() {
	awk -v head="## [${version#v}]" 'index($0, "## [") == 1 { inside = index($0, head) == 1; next } inside' CHANGELOG.md
}

checks() {
	[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "usage: release.sh vX.Y.Z"
	[ -z "$(git status --porcelain)" ] || fail "the working tree has changes; commit them first"
	! git rev-parse -q --verify "refs/tags/$version" >/dev/null || fail "$version is tagged already"
	grep -qE "^## \[${version#v}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
		fail "CHANGELOG.md has no section \"## [${version#v}] - YYYY-MM-DD\" with the date of the release"
	[ -n "$(section | tr -d '[:space:]')" ] || fail "the section of $version in CHANGELOG.md is empty"
	[ -d "backend/local/testdata/runs/$version" ] ||
		fail "there is no golden run; go run ./internal/dev/cmd/goldenrun backend/local/testdata/runs/$version"
	local module required
	for module in $(modules); do
		required=$(cd "$module" && go list -m -f '{{.Version}}' github.com/goart-dev/art)
		[ "$required" = "$version" ] ||
			fail "$module requires $required of the root; (cd $module && go mod edit -require=github.com/goart-dev/art@$version)"
	done
	recorded
	go run ./internal/dev/cmd/notice NOTICE
}

# recorded fails when the recorded API is not the one that is released.
recorded() {
	local file=$out/api.txt module
	for module in . $(modules); do
		go run ./internal/dev/cmd/apicheck -update "$module" "$file"
		cmp -s "$file" "internal/dev/release/api/$(api_name "$module").txt" ||
			fail "the recorded API of $module is old; go run ./internal/dev/cmd/apicheck -update $module internal/dev/release/api/$(api_name "$module").txt"
	done
	rm "$file"
}

api_name() { [ "$1" = . ] && echo art || basename "$1"; }

# binaries builds the command for each platform, with an inventory (SBOM) of each.
binaries() {
	local platform name suffix
	GOBIN=$PWD/$out/.bin go install "$SBOM"
	for platform in $PLATFORMS; do
		name=art_${version}_${platform/\//_}
		suffix=""
		[ "${platform%/*}" != windows ] || suffix=.exe
		export GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0
		go build -o "$out/$name$suffix" ./cmd/art
		"$out/.bin/cyclonedx-gomod" app -json -licenses -std -main cmd/art -output "$out/$name.cdx.json" .
		unset GOOS GOARCH CGO_ENABLED
	done
	rm -rf "$out/.bin"
	go run ./internal/dev/cmd/notice -texts "$out/THIRD_PARTY_LICENSES.txt"
	cp NOTICE LICENSE "$out"
	section >"$out/notes.md"
	(cd "$out" && sha256sum -- * >SHA256SUMS)
}

commands() {
	printf '\n%s\n' "release: $version is ready in $out. To publish it:"
	echo "  git tag -a $version -m $version"
	local module tags=$version
	for module in $(modules); do
		echo "  git tag -a $module/$version -m $module/$version"
		tags+=" $module/$version"
	done
	echo "  git push origin $tags"
	echo "  then publish $out with the text of notes.md, and see docs/versioning.md for what comes after."
	[ -z "$skipped" ] || echo "release: NOT CHECKED:$skipped"
}

rm -rf "$out"
mkdir -p "$out"
checks
skips ci || ART_CI_FULL=1 .ci/run
if skips fresh; then internal/dev/release/reproducible.sh; else internal/dev/release/reproducible.sh --fresh; fi
skips speed || internal/dev/release/speed.sh "${ART_RELEASE_BASE:-}"
binaries
commands
