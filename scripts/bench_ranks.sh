#!/bin/sh
# Measures how much several GPUs of one machine gain, in one run on one GPU and on more: the two notebooks' shapes and text in
# exact steps. Text lock-free, which ranks do not train, is measured on one GPU.
#
#   scripts/bench_ranks.sh [GPUS...]        1 2
#
# SPTX_TEXT      a text (wiki16.txt); without it the table has no row for text
# SPTX_WORK      directory for corpora and results (build/bench); ranks.jsonl is kept there
# SPTX_SECONDS   seconds of each measured run (10)
# SPTX_BIN       the program (build/sptx-w2v), or several, which take turns: builds by two CUDA Toolkits
set -eu
cd "$(dirname "$0")/.."
work=${SPTX_WORK:-build/bench}
seconds=${SPTX_SECONDS:-10}
programs=${SPTX_BIN:-build/sptx-w2v}
program=${programs%% *}
[ $# -gt 0 ] || set -- 1 2
mkdir -p "$work"
: >"$work/ranks.jsonl"
: >"$work/ranks-table"
. scripts/shapes.sh
make_corpora
shape lit2vec books lists 400 adamax 0.002 16384 yes
shape research2vec papers adjacency 188 sgd 0.1 32768 no

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

measure() { # GPUS PROGRAM CONFIG SETTING...
    echo "measuring $*" >&2
    gpus=$1 program=$2
    shift 2
    mpirun --bind-to none -n "$gpus" "$program" bench ranks "$@" --seconds="$seconds" --json 2>"$work/ranks.log" </dev/null |
        tee -a "$work/ranks.jsonl" || :
}

# Prints a line of the table: the speed of each program on each number of GPUs, and that speed divided by the first one's.
line() { # NAME KEY SCALE CONFIG SETTING...
    name=$1 key=$2 scale=$3
    shift 3
    printf '%s' "$name" >>"$work/ranks-table"
    first=
    for run in $(for count in $gpu_counts; do for program in $programs; do echo "$count:$program"; done; done); do
        rate=$(measure "${run%%:*}" "${run#*:}" "$@" | sed -n "s/.*\"$key\": \([^,}]*\).*/\1/p")
        [ -n "$rate" ] || { tail -n 1 "$work/ranks.log" >&2; rate=0; }
        [ -n "$first" ] || first=$rate
        awk -v r="$rate" -v f="$first" -v s="$scale" 'BEGIN { printf "  |  %.1f (x %.2f)", r / s, (f > 0 ? r / f : 0) }' >>"$work/ranks-table"
    done
    echo >>"$work/ranks-table"
}

gpu_counts=$*
echo "GPUs: $gpu_counts, each by $programs; millions a second, and times the first" >>"$work/ranks-table"
line "2,829,853 x 400, Adamax, pairs, all on the GPU" pairs_per_second 1e6 "$work/lit2vec.ini" $all_gpu
line "the same, targets and state pinned, none hot" pairs_per_second 1e6 "$work/lit2vec.ini" $pinned --memory.hot_rows=0
line "14,886,544 x 188, SGD, pairs, all on the GPU" pairs_per_second 1e6 "$work/research2vec.ini" $all_gpu
line "the same, targets pinned, none hot" pairs_per_second 1e6 "$work/research2vec.ini" $pinned --memory.hot_rows=0
if [ -n "${SPTX_TEXT:-}" ]; then
    line "text, dim 128, exact steps of 65,536, words" words_per_second 1e6 configs/wiki16.ini --corpus.path="$SPTX_TEXT" \
        --corpus.cache="$work/text-cache" --run.dir="$work/text-run" --train.update=batch --train.batch=65536 \
        --optimizer.clip=30 --negatives.per=example --train.epochs=1000 $all_gpu
    gpu_counts=1
    line "text, dim 128, lock-free, words, on one GPU" words_per_second 1e6 configs/wiki16.ini --corpus.path="$SPTX_TEXT" \
        --corpus.cache="$work/text-cache" --run.dir="$work/text-run" --train.update=hogwild --negatives.per=example \
        --train.epochs=1000 $all_gpu
fi
cat "$work/ranks-table"
