# Makes corpora with the shapes of the public notebooks' runs, for scripts that have set $work and $program.

make_corpora() {
    [ -f "$work/books.ids" ] || $program generate books --rows=2829853 --lists=700000 --out="$work/books.ids"
    [ -f "$work/papers.ids" ] || $program generate papers --rows=14886544 --lists=4000000 --out="$work/papers.ids"
}

all_gpu="--memory.target=gpu --memory.target_state=gpu --memory.context=gpu --memory.context_state=gpu"
pinned="--memory.target=pinned --memory.target_state=pinned --memory.context=gpu --memory.context_state=gpu"

shape() { # NAME CORPUS MODE DIM RULE LR BATCH REPLACEMENT
    cat >"$work/$1.ini" <<EOF
[corpus]
path = $work/$2.ids
vocab = $work/$2.ids.vocab.tsv
format = $3
order = given
min_count = 0
cache = $work/$1-cache
[examples]
positives = 4
short = repeat
replacement = $8
[negatives]
count = 64
law = uniform
per = example
exclude = no
[model]
dim = $4
[optimizer]
rule = $5
lr = $6
[train]
batch = $7
update = batch
epochs = 1000
[device]
backend = cuda
[memory]
depth = 5
[run]
dir = $work/$1-run
EOF
}
