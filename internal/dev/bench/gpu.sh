#!/usr/bin/env bash
# Measures models on a GPU through XLA, next to transformers and PEFT, in slices of less than 8 minutes each.
#
#   internal/dev/bench/gpu.sh build          here: needs Go and a C compiler; makes .gpu/ with the program and peers.py
#   .gpu/gpu.sh SLICE...                 there: needs jax's CUDA plug-in, PyTorch, transformers and PEFT, and no Go
#   .gpu/gpu.sh table                    the figures of all slices so far
#
# Slices are parity, 0.6b, 4b, 7b, 8b, 14b (ours), and peers-0.6b and so on; gap, gap-plain, gap-cache and gap-float32,
# the gap of sampler and trainer and the time of a step with each setting; and several, a step of GRPO on one and on all GPUs of the
# host. Parity comes first: where it fails, no figure counts. Compiled programs are kept: the second run of a slice shows
# how long it takes to open them, and one that ran out of time goes on where it was. Compiling takes most of the time, so
# that a few jobs run at once, of which one at a time measures; what the others compile then disturbs small figures: for
# those of one sequence, set AT_ONCE=1. Of models that are large for the GPU fewer jobs run at once, since each has its
# own weights. After a slice that fails the next ones still run. The exit status is then 1, and what failed is listed
# below the table until the slice has passed.
#
#   DEVICE   xla:cuda; with xla:cpu, PEER_DEVICE=cpu and SLICE tiny or peers-tiny it can be tried without a GPU
#   PYTHON   python3; its packages are also searched for XLA's plug-in, unless VIRTUAL_ENV names others
#   OUT      folder of the results, .gpu/out: lines of JSON, and log.txt with what failed
#   SHAPE    of gap and several, qwen3-0.6b
#   BUCKETS  "64 256 1024 4096", tokens of prompt and reply for gap
#   GPUS     of several, all
#   ART_XLA_CACHE  folder of the programs that are kept, .gpu/programs; empty for none
set -uo pipefail
cd "$(dirname "$0")"

DEVICE=${DEVICE:-xla:cuda}
PEER_DEVICE=${PEER_DEVICE:-cuda}
PYTHON=${PYTHON:-python3}
AT_ONCE=${AT_ONCE:-3} # jobs
SHAPE=${SHAPE:-qwen3-0.6b}
BUCKETS=${BUCKETS:-64 256 1024 4096}
LONG=16384            # tokens of the sequence of the job train
LIMIT=460             # seconds of a slice

# build makes a folder with everything that the other machine needs.
build() {
	local to
	cd ../../..
	to=$PWD/.gpu
	mkdir -p "$to"
	CGO_ENABLED=1 go build -trimpath -o "$to/gpu" ./internal/dev/bench/gpu || exit 1
	cp internal/dev/bench/gpu.sh internal/dev/bench/gpu/peers.py "$to" || exit 1
	du -sh "$to"
}

# left prints how many seconds of the slice are left.
left() { echo $((LIMIT - SECONDS)); }

# failed REASON... records what failed of this slice.
failed() {
	status=1 # not of the script, where the job runs beside others
	echo "gpu.sh: FAILED: $*" >&2
	echo "FAILED: $slice: $*" >>"$OUT/$slice.failed"
}

# job FILE COMMAND... runs one job, unless less than half a minute is left, and keeps its lines.
job() {
	local file=$1
	shift
	if [ "$(left)" -lt 30 ]; then
		failed "no time left for: $*"
		return
	fi
	echo "gpu.sh: $(left) s left: $*" >&2
	timeout -k 10 "$(left)" "$@" | tee -a "$OUT/$file"
	case ${PIPESTATUS[0]} in
	0) ;;
	124 | 137) failed "no time left, or killed: $*" ;;
	*) failed "$*" ;;
	esac
}

# start FILE COMMAND... runs a job beside others.
start() {
	if [ ${#started[@]} -ge "$AT_ONCE" ]; then
		wait "${started[0]}"
		started=("${started[@]:1}")
	fi
	job "$@" &
	started+=($!)
}

# finish waits for all jobs. One that failed has written it down.
finish() {
	wait "${started[@]}"
	started=()
	[ ! -e "$OUT/$slice.failed" ] || status=1
}

# fitting SHAPE prints how many jobs run at once: no more than AT_ONCE, nor than fit on the GPU by three times the weights
# of each in bfloat16, for what a training and a cache take beside them.
fitting() {
	local weights=1 most
	case $1 in # GiB
	qwen3-4b) weights=8 ;;
	qwen2.5-7b) weights=15 ;;
	llama-3-8b) weights=16 ;;
	qwen2.5-14b) weights=28 ;;
	esac
	most=$((MEMORY / 1024 / (3 * weights)))
	if [ "$MEMORY" = 0 ] || [ "$most" -ge "$AT_ONCE" ]; then
		echo "$AT_ONCE"
	else
		echo $((most > 1 ? most : 1))
	fi
}

# ours SHAPE measures this project. Calls of 32 tokens and of one show what the loop on the device gains.
ours() {
	local shape=$1 file=art-$1.jsonl AT_ONCE=$AT_ONCE
	AT_ONCE=$(fitting "$1")
	gpu() { start "$file" ./gpu -device "$DEVICE" -card "$CARD" -shape "$shape" -budget 20s -lock "$OUT/lock" "$@"; }
	gpu -tokens "$LONG" -recompute train
	gpu -tokens 256 -batch 1 decode
	gpu -tokens 256 -batch 64 decode
	gpu -tokens 512 -batch 64 grpo
	gpu -tokens 2048 prefill
	gpu -tokens 2048 forward
	gpu -tokens 256 -batch 16 decode
	gpu -tokens 64 -steps 1 -batch 1 decode
	gpu -tokens 64 -steps 1 -batch 16 decode
	finish
}

# gap DEVICE OPTION... measures the gap of sampler and trainer for each number of tokens, all compiling at once.
gap() {
	local device=$1 tokens AT_ONCE=4
	shift
	for tokens in $BUCKETS; do
		start art-gap.jsonl ./gpu -device "$device" -card "$CARD" -shape "$SHAPE" -budget 20s -lock "$OUT/lock" \
			-tokens "$tokens" -batch 8 "$@" gap
	done
	finish
}

# several measures a step of GRPO on one GPU and on all.
several() {
	local n
	if [ "$GPUS" -lt 2 ]; then
		failed "several needs 2 GPUs, and there are $GPUS"
		return
	fi
	for n in 1 "$GPUS"; do
		start art-several.jsonl ./gpu -device "$DEVICE" -card "$CARD" -shape "$SHAPE" -budget 20s -lock "$OUT/lock" \
			-tokens 512 -batch 64 -devices "$n" grpo
	done
	finish
}

# peers SHAPE measures the same with transformers and PEFT. Their decoding is slowest and comes last.
peers() {
	local shape=$1 file=peers-$1.jsonl AT_ONCE=$AT_ONCE
	AT_ONCE=$(fitting "$1")
	peer() {
		start "$file" "$PYTHON" peers.py --device "$PEER_DEVICE" --card "$CARD" --shape "$shape" --budget 20 \
			--lock "$OUT/lock" "$@"
	}
	peer --tokens "$LONG" --recompute train
	peer --tokens 2048 forward
	peer --tokens 2048 prefill
	peer --tokens 256 --batch 1 decode
	peer --tokens 256 --batch 16 decode
	peer --tokens 256 --batch 64 decode
	peer --tokens 512 --batch 64 grpo
	finish
}

# table prints all figures so far, and what failed.
table() (
	shopt -s nullglob
	./gpu table "$OUT"/{art,peers}-*.jsonl || exit 1
	lists=("$OUT"/*.failed)
	[ ${#lists[@]} = 0 ] || printf '\n%s\n' "$(cat "${lists[@]}")"
)

# run SLICE runs one slice.
run() {
	SECONDS=0
	slice=$1
	rm -f "$OUT/$slice.failed"
	case $slice in
	parity) job parity.jsonl ./gpu -device "$DEVICE" parity ;;
	tiny) LONG=256 ours tiny ;;
	0.6b) ours qwen3-0.6b ;;
	4b) ours qwen3-4b ;;
	7b) ours qwen2.5-7b ;;
	8b) ours llama-3-8b ;;
	14b) ours qwen2.5-14b ;;
	gap) gap "$DEVICE" ;;
	gap-plain) gap "$DEVICE,flash_attention=false" ;;
	gap-cache) gap "$DEVICE,flash_attention=false" -cache float32 ;;
	gap-float32) gap "$DEVICE" -weights float32 -cache float32 ;;
	several) several ;;
	peers-tiny) LONG=256 peers tiny ;;
	peers-0.6b) peers qwen3-0.6b ;;
	peers-4b) peers qwen3-4b ;;
	peers-7b) peers qwen2.5-7b ;;
	peers-8b) peers llama-3-8b ;;
	peers-14b) peers qwen2.5-14b ;;
	table) table || status=1 ;;
	*)
		echo "gpu.sh: $slice is no slice" >&2
		status=1
		;;
	esac
}

if [ "${1:-}" = build ]; then
	build
	exit
fi
OUT=${OUT:-$PWD/out}
mkdir -p "$OUT"
export VIRTUAL_ENV=${VIRTUAL_ENV:-$("$PYTHON" -c 'import sys; print(sys.prefix)')}
export ART_XLA_CACHE=${ART_XLA_CACHE-$PWD/programs}
CARD=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
MEMORY=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -n 1) # MiB
[[ $MEMORY =~ ^[0-9]+$ ]] || MEMORY=0 # not known
GPUS=${GPUS:-$(nvidia-smi -L 2>/dev/null | wc -l)}
status=0 started=() # jobs beside this one
{
	command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader >&2
	for name; do run "$name"; done
} 2> >(tee -a "$OUT/log.txt" >&2)
wait # for the log
exit "$status"
