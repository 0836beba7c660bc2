#!/bin/sh
# Plans where the bytes go, on the host and on the GPU by placement: for SpeedTorch's own table of 10,000,000 x 128 float32 and
# for both notebooks' runs. Then it finds the widest rows that fit a small card with and without tables in host memory, by
# bisection over `sptx-w2v plan`. Nothing of a run is allocated, and no GPU is needed.
#
#   scripts/memory_table.sh [--confirm] [CARD]      CARD: the small card's memory (11GiB)
#
# --confirm trains 20 steps with each of the widest rows, on a GPU limited to CARD, and prints the memory that they used.
#
# SPTX_WORK    directory for corpora and plans (build/memory)
# SPTX_SCALE   divides the numbers of rows, to try the script itself (1)
# GB are 10^9 bytes.
set -eu
cd "$(dirname "$0")/.."
confirm=
[ "${1:-}" != --confirm ] || { confirm=yes; shift; }
card=${1:-11GiB}
work=${SPTX_WORK:-build/memory}
scale=${SPTX_SCALE:-1}
mkdir -p "$work"
. scripts/measure.sh

corpus() { # NAME KIND ROWS: few lists are enough where only rows are counted
    [ -f "$work/$1.ids" ] || $program generate "$2" --rows=$(($3 / scale)) --lists=$((100000 / scale + 10)) --out="$work/$1.ids" >/dev/null
}
corpus table books 10000000
corpus books books 2829853
corpus papers papers 14886544
cat >"$work/table.ini" <<EOF
[corpus]
format = lists
[examples]
short = repeat
[negatives]
count = 64
law = uniform
[model]
dim = 128
[optimizer]
rule = sgd
[train]
batch = 512
EOF

# Writes a plan to $work/plan.json, even if the run does not fit.
plan() { # CONFIG CORPUS BUDGET SETTING...
    config=$1 ids=$2 budget=$3
    shift 3
    $program plan "$config" --json --corpus.path="$work/$ids.ids" --run.dir="$work/$ids-run" --device.backend=cuda \
        --memory.gpu_budget="$budget" "$@" >"$work/plan.json" 2>"$work/plan.log" || [ -s "$work/plan.json" ] ||
        { cat "$work/plan.log" >&2; exit 1; }
}
number() { value "$work/plan.json" "$1"; }
gb() { scaled "$1" 1e9 2; }

places() { # TARGET TARGET_STATE CONTEXT CONTEXT_STATE
    echo "--memory.target=$1 --memory.target_state=$2 --memory.context=$3 --memory.context_state=$4"
}
all_gpu=$(places gpu gpu gpu gpu)
targets=$(places pinned pinned gpu gpu)
reverse=$(places gpu gpu pinned pinned)
states=$(places gpu pinned gpu pinned)
but_contexts=$(places pinned pinned gpu pinned)
all_pinned=$(places pinned pinned pinned pinned)

# Loops over the runs of both parts below: sets $run, $config, $ids, and writes each plan to $work/plan.json.
runs='lit2vec:books lit2vec-496-adamax:books research2vec:papers'
take_run() { # RUN:CORPUS
    run=${1%:*} ids=${1#*:}
    config=configs/$run.ini
    plan "$config" "$ids" 10000GiB
}

# ---- by placement ----

# No row is hot and the card has no limit, so each part is counted in the place that the settings give it.
bytes_row() { # LABEL CONFIG CORPUS SETTING...
    label=$1 config=$2 ids=$3
    shift 3
    plan "$config" "$ids" 10000GiB --memory.hot_rows=0 "$@"
    printf '  %-44s %10s %10s %12s %12s\n' "$label" "$(gb "$(number table_pinned_bytes)")" "$(gb "$(number table_gpu_bytes)")" \
        "$(gb "$(number host_needed)")" "$(gb "$(number gpu_needed)")"
}
table_head() { printf '\n%-46s %10s %10s %12s %12s\n' "$1" "tables, GB" "" "whole run, GB" ""; printf '%-46s %10s %10s %12s %12s\n' "" host GPU host GPU; }

table_head "$((10000000 / scale)) x 128 float32"
[ "$scale" -ne 1 ] || printf '  %-44s %10s %10s\n' "SpeedTorch, one table pinned" 9.93 0.06
plan "$work/table.ini" table 10000GiB --memory.hot_rows=0 $targets
printf '  %-44s %10s %10s\n' "one table pinned" "$(gb "$(number target_bytes)")" 0.00
if [ -n "$confirm" ]; then
    $program bench memory --rows=$((10000000 / scale)) --json --device.backend=cuda >"$work/bench.json"
    printf '  %-44s %10s %10s\n' "one table pinned, measured" "$(gb "$(value "$work/bench.json" host_bytes)")" \
        "$(gb "$(value "$work/bench.json" gpu_bytes)")"
fi
bytes_row "targets and contexts on the GPU" "$work/table.ini" table $all_gpu
bytes_row "targets pinned" "$work/table.ini" table $targets
bytes_row "both pinned" "$work/table.ini" table $all_pinned
for each in $runs; do
    take_run "$each"
    table_head "$run, $(number rows) x $(number dim)"
    bytes_row "everything on the GPU" "$config" "$ids" $all_gpu
    bytes_row "targets and their state pinned" "$config" "$ids" $targets
    [ "$run" = research2vec ] || bytes_row "both states pinned (the notebook's)" "$config" "$ids" $states
    [ "$run" != research2vec ] || bytes_row "contexts pinned (the notebook's)" "$config" "$ids" $reverse
    bytes_row "everything pinned" "$config" "$ids" $all_pinned
done

# ---- the widest rows on a small card ----

fits() { # DIM CONFIG CORPUS SETTING...
    dim=$1 config=$2 ids=$3
    shift 3
    plan "$config" "$ids" "$card" --model.dim="$dim" "$@"
    [ "$(number fits_gpu)" = true ]
}
# Prints the GPU memory needed at this number of columns, with no hot row.
cold() { # DIM CONFIG CORPUS SETTING...
    dim=$1 config=$2 ids=$3
    shift 3
    plan "$config" "$ids" 10000GiB --model.dim="$dim" --memory.hot_rows=0 "$@"
    number gpu_needed
}
# Finds the largest multiple of 4 up to 4096 that fits, or 0, and leaves its plan in $work/plan.json. Bytes grow evenly with the
# width, so two plans tell roughly where it lies; bisection goes on from there, or from the ends where that was wrong.
widest() { # CONFIG CORPUS SETTING...
    narrow=$(cold 256 "$@") wide=$(cold 1280 "$@")
    fits 4 "$@" || true
    held=$(number gpu_available)
    guess=$(awk -v n="$narrow" -v w="$wide" -v h="$held" 'BEGIN { g = 64 + 256 * (h - n) / (w - n); print int(g < 0 ? 0 : g > 1024 ? 1024 : g) }')
    low=0 high=1025
    for near in $((guess + 4)) $((guess - 4)); do
        [ "$near" -gt "$low" ] && [ "$near" -lt "$high" ] || continue
        if fits $((4 * near)) "$@"; then low=$near; else high=$near; fi
    done
    while [ $((high - low)) -gt 1 ]; do
        middle=$(((low + high) / 2))
        if fits $((4 * middle)) "$@"; then low=$middle; else high=$middle; fi
    done
    dim=$((4 * low))
    [ "$dim" -eq 0 ] || fits "$dim" "$@"
}
# Runs steps at that width, and prints the most that the card held meanwhile: by nvidia-smi (with what others hold), and by our own
# count.
confirmed() { # DIM CONFIG CORPUS SETTING...
    dim=$1 config=$2 ids=$3
    shift 3
    smi=$work/smi.log
    : >"$smi"
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 100 >"$smi" 2>/dev/null &
    watcher=$!
    if $program bench train "$config" --steps=20 --json --corpus.path="$work/$ids.ids" --run.dir="$work/$ids-run" \
        --device.backend=cuda --memory.gpu_budget="$card" --model.dim="$dim" "$@" >"$work/bench.json" 2>"$work/bench.log"; then
        said="runs: $(gb "$(value "$work/bench.json" gpu_bytes)") GB of the GPU, $(gb "$(value "$work/bench.json" host_bytes)") GB of the host, \
nvidia-smi $(sort -n "$smi" | awk '/^[0-9]+$/ { most = $1 } END { printf "%.2f", most * 1048576 / 1e9 }') GB, $(scaled "$(value "$work/bench.json" pairs_per_second)" 1e6 2) M pairs/s"
    else
        said="does not run: $(tail -n 1 "$work/bench.log")"
    fi
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
}
widest_row() { # LABEL CONFIG CORPUS SETTING...
    label=$1 said=
    shift
    widest "$@"
    [ -z "$confirm" ] || [ "$dim" -eq 0 ] || confirmed "$dim" "$@"
    printf '  %-44s %10s %10s %10s  %s\n' "$label" "$dim" "$(gb "$(number host_needed)")" "$(gb "$(number gpu_needed)")" "$said"
}

printf '\n%-46s %10s %10s %10s\n' "the widest rows on a card of $card" dim "host, GB" "GPU, GB"
for each in $runs; do
    take_run "$each"
    echo "$run, $(number rows) rows"
    widest_row "nothing pinned" "$config" "$ids" $all_gpu
    widest_row "targets and their state pinned" "$config" "$ids" $targets
    [ "$run" = research2vec ] || widest_row "contexts alone on the GPU" "$config" "$ids" $but_contexts
    widest_row "everything pinned" "$config" "$ids" $all_pinned
done
