#!/bin/sh
# The largest model that the GPUs of one machine hold between them: 14,886,544 rows, and on each GPU as many columns as one GPU
# takes (contexts there, targets in host memory but for those that the GPU has space for). Asks `plan`, trains steps with all
# ranks, and says what they took beside what was planned. Nothing is written but the corpus: `bench ranks` fills and trains the
# tables as train does, and saves none of them.
#
#   scripts/largest_model.sh [GPUS]         2
#
# SPTX_DIM       columns of all ranks; where they do not fit, the most that do (1920 for each GPU, at most 4096)
# SPTX_ROWS      rows (14886544)
# SPTX_STEPS     steps that are trained (100)
# SPTX_BATCH     examples a step (16384)
# SPTX_BACKEND   cuda; with cpu and smaller numbers the script is tried without GPUs
# SPTX_WORK      where the corpus and results go (build/bench); largest.json stays there
# Exit code 1 where a rank took 5% more or less than planned of the host's memory or its GPU's, or was gone before that was seen.
# GB are 10^9 bytes.
set -eu
cd "$(dirname "$0")/.."
gpus=${1:-2}
case $gpus in '' | 0* | *[!0-9]* | ?????*) gpus=0 ;; esac
[ $# -le 1 ] && [ "$gpus" -ge 1 ] && [ "$gpus" -le 1024 ] ||
    { echo "largest_model.sh: '$*' is not one whole number of GPUs from 1 to 1024" >&2; exit 2; }
work=${SPTX_WORK:-build/bench}
rows=${SPTX_ROWS:-14886544}
steps=${SPTX_STEPS:-100}
backend=${SPTX_BACKEND:-cuda}
dim=${SPTX_DIM:-$((1920 * gpus < 4096 ? 1920 * gpus : 4096))}
mkdir -p "$work"
. scripts/measure.sh
. scripts/shapes.sh
[ -f "$work/largest-$rows.ids" ] || $program generate papers --rows="$rows" --lists=$((rows / 4 + 10)) --out="$work/largest-$rows.ids"
shape largest "largest-$rows" adjacency "$dim" sgd 0.1 "${SPTX_BATCH:-16384}" no
keys="--device.backend=$backend --memory.depth=3 $pinned"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ---- the plan ----

fits() { # DIM: leaves its plan in largest-plan.json
    $program plan "$work/largest.ini" $keys --json --model.dim="$1" --device.gpus="$gpus" --device.share=columns \
        >"$work/largest-plan.json" 2>"$work/largest.log" ||
        [ -s "$work/largest-plan.json" ] || { tail -n 1 "$work/largest.log" >&2; exit 1; }
    [ "$(value "$work/largest-plan.json" fits)" = true ]
}
planned() { value "$work/largest-plan.json" "$1"; }
if ! fits "$dim"; then
    low=0 high=$((dim / 4 / gpus)) # groups of four columns a rank; low fits, high does not
    while [ $((high - low)) -gt 1 ]; do
        middle=$(((low + high) / 2))
        if fits $((middle * 4 * gpus)); then low=$middle; else high=$middle; fi
    done
    [ $low -gt 0 ] || { echo "largest_model.sh: not even $((4 * gpus)) columns fit here" >&2; exit 1; }
    echo "$dim columns do not fit here; $((low * 4 * gpus)) do"
    dim=$((low * 4 * gpus))
    fits "$dim"
fi

# ---- the run ----

# Prints the most memory that each rank's process used, and the most used on each GPU, by any process: lines of KIND NUMBER BYTES.
watch_memory() {
    while sleep 0.5; do
        for pid in "$work"/largest-pid.*; do
            awk -v r="${pid##*.}" '/^VmHWM/ { print "host", r, $2 * 1024 }' "/proc/$(cat "$pid")/status" 2>/dev/null || :
        done
        [ "$backend" != cuda ] || nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits |
            awk -F', *' '{ print "gpu", $1, $2 * 1048576 }'
    done
}
most() { awk -v k="$1" -v r="$2" '$1 == k && $2 == r && $3 > most { most = $3 } END { printf "%.0f", most }' "$work/largest-memory"; }
rm -f "$work"/largest-pid.*
watch_memory >"$work/largest-memory" 2>/dev/null &
watcher=$! runner=
trap 'kill $watcher $runner 2>/dev/null || :' EXIT
trap 'exit 1' HUP INT TERM # mpirun and what it holds would go on without the script
began=$(date +%s)
mpirun --bind-to none --oversubscribe -n "$gpus" sh -c 'echo $$ >"$0.$OMPI_COMM_WORLD_RANK"; exec "$@"' "$work/largest-pid" \
    "$program" bench ranks "$work/largest.ini" $keys --model.dim="$dim" --steps="$steps" --json >"$work/largest.json" 2>"$work/largest.log" </dev/null &
runner=$!
wait $runner ||
    { grep '^sptx-w2v: ' "$work/largest.log" >&2 || tail -n 20 "$work/largest.log" >&2; exit 1; }
ended=$(date +%s)
kill $watcher
trap - EXIT HUP INT TERM

# ---- what it took ----

gb() { scaled "$1" 1e9 2; }
rank() { # NUMBER KEY
    sed 's/.*"by_rank": \[//; s/}, {/}\n{/g' "$work/largest.json" | sed -n "$(($1 + 1))s/.*\"$2\": \([^,}]*\).*/\1/p"
}
echo "$rows rows x $dim columns over $gpus ranks, $(planned columns) columns on the widest; $(planned hot_rows) rows of targets on the GPU"
awk -v b=$((2 * rows * dim * 4)) -v s="$(value "$work/largest.json" seconds)" -v n="$(value "$work/largest.json" steps)" \
    -v p="$(value "$work/largest.json" pairs_per_second)" -v l="$(value "$work/largest.json" loss_pair)" -v w=$((ended - began)) \
    'BEGIN { printf "both tables %.2f GB; %d steps in %.2f s, %.2f M pairs/s, loss %s a pair; %d s in all\n", b / 1e9, n, s, p / 1e6, l, w }'
printf '%-34s %10s %10s %10s\n' "GB" planned took "times"
wrong=0
compare() { # NAME PLANNED TOOK; the ranks that have fewer columns take less
    [ "$3" -gt 0 ] || { echo "$1 was not seen, the run was too short: raise SPTX_STEPS"; wrong=1; return; }
    printf '%-34s %10s %10s %10s\n' "$1" "$(gb "$2")" "$(gb "$3")" "$(scaled "$3" "$2" 3)"
    awk -v p="$2" -v t="$3" 'BEGIN { exit !(t < 0.95 * p || t > 1.05 * p) }' || return 0
    wrong=1
}
for r in $(seq 0 $((gpus - 1))); do
    [ "$(rank "$r" columns)" -eq "$(planned columns)" ] || { echo "rank $r has $(rank "$r" columns) columns"; continue; }
    compare "rank $r, host, at its peak" "$(planned host_needed)" "$(most host "$r")"
    [ "$backend" = cuda ] || continue
    compare "rank $r, GPU, as the program counts" "$(planned gpu_needed)" "$(rank "$r" gpu_bytes)"
    [ "$(most gpu "$r")" -eq 0 ] || compare "rank $r, GPU, by nvidia-smi" "$(planned gpu_needed)" "$(most gpu "$r")"
    echo "rank $r was ready after $(rank "$r" loading_seconds) s"
done
[ $wrong -eq 0 ] || echo "more than 5% beside the plan, or not seen"
exit $wrong
