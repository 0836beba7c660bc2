#!/bin/sh
# Trains one epoch of each notebook's run at full size by `sptx-w2v train`, and prints its time beside the time that SpeedTorch
# would need for as many examples, with the ratio.
#
#   scripts/compare_speedtorch.sh [CONFIG ...] [--section.key=value ...]
#
# CONFIG: lit2vec, lit2vec-496-adamax, research2vec, research2vec-tuned, papers-cs, word2vec-notebook; all of them where none
# is named. Settings go to every run of ours: --memory.hot_rows=0 leaves every target row in host memory.
#
# SPTX_ANCHORS   directory of SpeedTorch's scripts (scripts/measure.sh); without it SpeedTorch's columns are empty
# SPTX_WORK      directory for corpora, runs and logs (build/compare); must have space for one checkpoint, up to 36 GB
# SPTX_SCALE     divides the numbers of rows and lists, to try the script itself (1)
#
# Ours is the time from the first batch to the last, the run's own batch and negatives; loading and the checkpoint are in
# `whole`. SpeedTorch's script trains batches of 512 with 64 negatives whatever the run has (128 to 256), with Adamax where
# the run's rule keeps a state and with SGD where it keeps none; 60 of its steps are measured and an epoch is made of these.
set -eu
cd "$(dirname "$0")/.."
work=${SPTX_WORK:-build/compare}
scale=${SPTX_SCALE:-1}
mkdir -p "$work"
. scripts/measure.sh

configs= settings=
for argument; do
    case $argument in --*) settings="$settings $argument" ;; *) configs="$configs $argument" ;; esac
done
configs=${configs:-lit2vec lit2vec-496-adamax research2vec research2vec-tuned papers-cs word2vec-notebook}

corpus() { # FILE KIND ROWS LISTS
    [ -f "$work/$1" ] || $program generate "$2" --rows=$(($3 / scale)) --lists=$(($4 / scale)) --out="$work/$1" >/dev/null
}

# Sets what a config trains, its corpus, and the arguments of SpeedTorch's script.
of_config() { # CONFIG
    peer_dim=$(sed -n 's/^dim = //p' "configs/$1.ini") peer_rule='SGD:'
    [ "$(sed -n 's/^rule = //p' "configs/$1.ini")" = sgd ] || peer_rule='Adamax state pinned'
    case $1 in
        lit2vec*) file=books.ids rows=2829853 lists=700000 kind=books ;;
        research2vec*) file=papers.ids rows=14886544 lists=14886544 kind=papers ;;
        papers-cs) file=papers-cs.ids rows=1262996 lists=1262996 kind=papers ;;
        word2vec-notebook) file=words.txt rows=50000 lists=850000 kind=words ;;
        *) echo "$me: '$1' is not a run that SpeedTorch has; see the head of this script" >&2; exit 2 ;;
    esac
    corpus $file $kind $rows $lists
    [ $kind = words ] || return 0
    file=words.windows
    [ -f "$work/$file" ] || scripts/windows.sh 2 "$work/words.txt" >"$work/$file"
}

# Trains one epoch; sets the seconds of training, the seconds in all, the examples and the pairs.
epoch() { # CONFIG
    began=$(date +%s)
    rm -rf "$work/run"
    if ! $program train "configs/$1.ini" --corpus.path="$work/$file" --run.dir="$work/run" --corpus.cache="$work/cache-$1" \
        --train.epochs=1 --train.steps=0 --run.checkpoint_every=end $settings >"$work/$1.log" 2>&1; then
        tail -n 1 "$work/$1.log" >&2
        return 1
    fi
    whole=$(($(date +%s) - began))
    seconds=$(value "$work/run/metrics.jsonl" seconds) pairs=$(value "$work/run/metrics.jsonl" pairs)
    dim=$(sed -n 's/^dim = //p' "$work/run/config.ini") trained_rows=$(grep -c '' "$work/run/vocab.tsv")
    rm -rf "$work/run"
}

echo "command    $0 $*"
echo "date       $(date -u +%Y-%m-%dT%H:%M:%SZ)"
$program devices | sed -n 's/^/device     /p' | head -n 4
[ -n "${SPTX_ANCHORS:-}" ] && [ -f "$SPTX_ANCHORS/speedtorch_train.py" ] ||
    echo "SpeedTorch is left out: SPTX_ANCHORS names no directory with speedtorch_train.py"
printf '\n%-20s %20s %12s %10s %10s %10s %14s %8s\n' run "rows x dim" examples "ours, s" "whole, s" "M pairs/s" "SpeedTorch, s" ratio
for config in $configs; do
    of_config "$config"
    if ! epoch "$config"; then
        printf '%-20s failed: see %s\n' "$config" "$work/$config.log"
        continue
    fi
    log=$work/peers-$rows-$peer_dim.log
    [ -s "$log" ] || anchor "peers-$rows-$peer_dim" speedtorch_train.py $((rows / scale)) "$peer_dim"
    rate=$(peer "$log" "SpeedTorch.*$peer_rule" "k pairs")
    theirs=$([ -z "$rate" ] || awk -v p="$pairs" -v r="$rate" 'BEGIN { print p / (1000 * r) }')
    printf '%-20s %20s %12s %10s %10s %10s %14s %8s\n' "$config" "$trained_rows x $dim" $((pairs / 4)) "$(scaled "$seconds" 1 2)" \
        "$whole" "$(scaled "$pairs" "$(scaled "$seconds" 1e-6 0)" 2)" "$(scaled "$theirs" 1 1)" "$(scaled "$theirs" "$seconds" 0)"
done
