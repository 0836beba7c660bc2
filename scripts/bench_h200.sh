#!/bin/sh
# Makes all measurements on one GPU, as one table: rows exchanged with host memory, the shapes of the two notebooks, text.
#
#   scripts/bench_h200.sh [--brief]
#
# SPTX_ANCHORS   measures SpeedTorch and PyTorch, too (scripts/measure.sh)
# SPTX_TEXT      a text for words/s (wiki16.txt); default: a generated text
# SPTX_WORK      directory for corpora and results (build/bench); results.jsonl and *.log are kept there
# SPTX_SECONDS   seconds of each measured run (10)
#
# --brief leaves out the series of row sizes and table sizes.
set -eu
cd "$(dirname "$0")/.."
work=${SPTX_WORK:-build/bench}
seconds=${SPTX_SECONDS:-10}
brief=
[ "${1:-}" = --brief ] && brief=--brief
results=$work/results.jsonl
mkdir -p "$work"
: >"$results"
. scripts/measure.sh

row() { printf '%-58s %12s %12s %12s  %s\n' "$1" "$2" "$3" "$4" "$5" >>"$work/table"; }

# Measures a config, and writes the numbers to $work/NAME.json. If the run fails, the row of the table says so.
train() { # NAME CONFIG SETTING...
    to=$work/$1 config=$2
    shift 2
    echo "measuring ${to##*/}" >&2
    if $program bench train "$config" --seconds="$seconds" --json "$@" >"$to.json" 2>"$to.log"; then
        cat "$to.json" >>"$results"
    else
        tail -n 1 "$to.log" >&2
        : >"$to.json"
    fi
}
pairs() { scaled "$(value "$work/$1.json" pairs_per_second)" 1e6 2; }
words() { scaled "$(value "$work/$1.json" words_per_second)" 1e6 1; }

# ---- peers ----

anchor transfer-peers speedtorch_bench.py
anchor lit2vec-peers speedtorch_train.py 2829853 400
anchor research2vec-peers speedtorch_train.py 14886544 188
transfer_peers=$work/transfer-peers.log
lit_peers=$work/lit2vec-peers.log
research_peers=$work/research2vec-peers.log

# ---- transfer ----

echo "measuring transfers" >&2
$program bench transfer --json $brief --file="$work/rows" >"$work/transfer.json"
cat "$work/transfer.json" >>"$results"
sum_of() { grep "\"place\": \"$1\", \"order\": \"$2\"" "$work/transfer.json" | head -n 1 | sed 's/.*"'"$3"'": \([^,}]*\).*/\1/'; }

# ---- the notebooks' shapes ----

. scripts/shapes.sh
make_corpora
shape lit2vec books lists 400 adamax 0.002 16384 yes
shape research2vec papers adjacency 188 sgd 0.1 32768 no
for name in lit2vec research2vec; do
    rows=2829853
    [ $name = research2vec ] && rows=14886544
    train $name-pinned "$work/$name.ini" $pinned --memory.hot_rows=0
    train $name-hot "$work/$name.ini" $pinned --memory.hot_rows=$((rows / 10))
    train $name-gpu "$work/$name.ini" $all_gpu
done

# ---- text ----

text=${SPTX_TEXT:-$work/words.txt}
[ -f "$text" ] || $program generate words --rows=80000 --lists=850000 --out="$text"
cat >"$work/text.ini" <<EOF
[corpus]
path = $text
cache = $work/text-cache
[examples]
window = 5
subsample = 1e-4
[negatives]
count = 5
[model]
dim = 128
[train]
update = hogwild
epochs = 1000
[device]
backend = cuda
[memory]
target = gpu
target_state = gpu
[run]
dir = $work/text-run
EOF
train text-pair "$work/text.ini" --negatives.per=pair
train text-example "$work/text.ini" --negatives.per=example

# ---- the table ----

: >"$work/table"
row "one table of 131,072 x 128 out of 1,000,000, to + from" "ours" "SpeedTorch" "PyTorch" "ms"
st() { peer "$transfer_peers" "$1" " ms"; }
row "  on the GPU" "$(scaled "$(sum_of gpu random sum_seconds)" 1e-3 3)" "$(st 'SpeedTorch(cuda)')" "$(st 'Pytorch(cuda)')" ""
row "  pinned" "$(scaled "$(sum_of pinned random sum_seconds)" 1e-3 3)" "$(st 'SpeedTorch(PinnedCPU)')" "$(st 'Pytorch(PinnedCPU)')" "PyTorch with care: $(st 'careful-PyTorch')"
row "  pinned, both ways at once" "$(scaled "$(sum_of pinned random both_seconds)" 1e-3 3)" - - ""
row "  in a file" "$(scaled "$(sum_of file random sum_seconds)" 1e-3 3)" - - ""
million() { scaled "$(peer "$1" "$2" "k pairs")" 1000 2; }
row "2,829,853 x 400, Adamax, 4 + 64 a target" "ours" "SpeedTorch" "PyTorch" "M pairs/s"
row "  targets and state pinned" "$(pairs lit2vec-pinned)" "$(million "$lit_peers" 'Adamax state pinned')" - ""
row "  the same, 10% of the rows hot" "$(pairs lit2vec-hot)" - - ""
row "  everything on the GPU" "$(pairs lit2vec-gpu)" - "$(million "$lit_peers" 'pure PyTorch, all')" "PyTorch: SparseAdam; larger batches in $(basename "$lit_peers")"
row "14,886,544 x 188, SGD, 4 + 64 a target" "ours" "SpeedTorch" "PyTorch" "M pairs/s"
row "  targets pinned" "$(pairs research2vec-pinned)" "$(million "$research_peers" 'contexts on GPU, SGD')" - ""
row "  the same, 10% of the rows hot" "$(pairs research2vec-hot)" - - ""
row "  everything on the GPU" "$(pairs research2vec-gpu)" - "$(million "$research_peers" 'pure PyTorch, all')" "PyTorch: SparseAdam; larger batches in $(basename "$research_peers")"
row "text, dim 128, window 5, 5 negatives, subsample 1e-4" "ours" "" "" "M words/s"
row "  negatives of each pair" "$(words text-pair)" "" "" ""
row "  negatives of each window" "$(words text-example)" "" "" ""
cat "$work/table"
