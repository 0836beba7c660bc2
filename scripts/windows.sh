#!/bin/sh
# Writes a text as the word2vec notebooks see it: a line for each word that has WIDTH words on either side, that word first and the
# 2 x WIDTH others behind it (corpus.format = adjacency). The text is one stream: windows go across line ends.
#
#   scripts/windows.sh WIDTH TEXT >ADJACENCY
set -eu
width=${1:-} text=${2:-}
case $width in '' | *[!0-9]* | 0) echo "usage: scripts/windows.sh WIDTH TEXT >ADJACENCY   (WIDTH: words each side, from 1)" >&2; exit 2 ;; esac
[ -r "$text" ] || { echo "windows.sh: '$text' cannot be read" >&2; exit 1; }
tr -s ' \t\r\n\v\f' '[\n*]' <"$text" | LC_ALL=C awk -v width="$width" '
    $0 == "" { next }
    { word[++count % (2 * width + 1)] = $0 }
    count > 2 * width {
        middle = count - width
        line = word[middle % (2 * width + 1)]
        for (at = count - 2 * width; at <= count; at++) if (at != middle) line = line " " word[at % (2 * width + 1)]
        print line
    }'
