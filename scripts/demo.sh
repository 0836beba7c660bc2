#!/usr/bin/env bash
# Makes a first result: vectors of the words and identifiers in this machine's C headers.
# Called by `make demo` after the build. Takes under three minutes on two cores, and ends with a page for the browser.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${BUILD:-build}/sptx-w2v
corpus=build/demo/headers.txt
run=build/demo/run
report=build/demo/report.html
words='pthread_mutex_lock EINVAL uint32_t sin'

echo "== the corpus: the headers under /usr/include, a line a header, as $corpus"
scripts/headers.sh "$corpus"
wc -lw "$corpus" | awk '{ print $1 " lines, " $2 " words" }'

echo "== $program train configs/quickstart.ini --run.dir=$run"
"$program" train configs/quickstart.ini --run.dir="$run" --overwrite
echo "   Judge by the held-out loss: its windows are never trained, and it falls with every epoch. The other loss rises and falls with"
echo "   the headers that are read at the moment."

for word in $words; do
    echo "== $program nearest $run $word"
    "$program" nearest "$run" "$word" --k=8 || true
done

echo "== $program report $run --out=$report --search=40000"
"$program" report "$run" --out="$report" --search=40000

cat <<NEXT

What next:
  look at it           file://$PWD/$report in a browser: curves, a map, nearest words
  other words          $program nearest $run EAGAIN socklen_t
  your own text        $program train configs/quickstart.ini --corpus.path=TEXT --run.dir=runs/mine
                       (files or directories; .gz and .zst too; a line is a sentence, or no newline at all)
                       $program nearest runs/mine WORD
  for other programs   $program export runs/mine --format=word2vec-bin --out=mine.bin
  every key            $program help keys
NEXT
