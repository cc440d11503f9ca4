#!/usr/bin/env bash
# Runs the tests of exact numbers for arm64 on this machine, by emulation: NEON against plain Go, and both against stored
# results.
#
#   apt-get install qemu-user
#   internal/dev/release/arm64.sh [PACKAGE...]
#
# Emulation is 10 to 50 times slower than the processor, so that only the kernels are tested by default.
set -euo pipefail
cd "$(dirname "$0")/../../.."

qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || {
	echo "qemu-aarch64 is missing: apt-get install qemu-user" >&2
	exit 3
}
[ $# -gt 0 ] || set -- ./backend/device/cpu/internal/gemm ./backend/device/cpu/internal/vec ./backend/device/cpu/internal/fma \
	./backend/device/cpu/internal/deltarule
export GOOS=linux GOARCH=arm64 CGO_ENABLED=0 GOFLAGS=-trimpath
for level in neon portable; do
	ART_CPU=$level go test -short -timeout 30m -exec "$qemu" "$@"
done
