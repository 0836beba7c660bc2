#!/usr/bin/env bash
# Makes a corpus of text from this machine's C headers: one line for each header, with its identifiers and words as tokens.
#
#   scripts/headers.sh OUT [DIRECTORY]     DIRECTORY: /usr/include
#
# The C library's and the kernel's own headers come first; at most 16 MB of others follow, so that a machine full of
# libraries does not make a long corpus. Headers above 512 kB are tables of numbers: they are left out.
set -euo pipefail
out=${1:?usage: headers.sh OUT [DIRECTORY]}
root=${2:-/usr/include}
export LC_ALL=C

[ -d "$root" ] || { echo "headers: '$root' is no directory" >&2; exit 1; }
mkdir -p "$(dirname "$out")"

# Prints lines of size TAB rank TAB path; the rank of the system's own headers is lower.
list() {
    find "$root" -type f -name '*.h' -size -512k -printf '%s\t%P\n' | awk -F '\t' '
        { own = $2 ~ /^(([a-z0-9_]+-linux-gnu[a-z0-9]*\/)?(bits|sys|gnu|asm|c\+\+)\/|linux\/|asm-generic\/|net|arpa\/|rpc\/|[a-z0-9_]+\.h$)/ }
        { print (own ? 0 : 1) "\t" $1 "\t" $2 }' | sort -t "$(printf '\t')" -k1,1n -k3,3 |
        awk -F '\t' '$1 == 1 { others += $2 } $1 == 0 || others < 16e6 { printf "%s%c", $3, 0 }'
}

words() {
    awk '
        FNR == 1 && NR > 1 { print "" }
        {
            gsub(/[^A-Za-z0-9_]+/, " ")
            for (i = 1; i <= NF; i++) if ($i !~ /^[0-9]/) printf "%s ", $i
        }
        END { print "" }' "$@"
}
export -f words

(cd "$root" && list | xargs -0 -n 500 bash -c 'words "$@"' words) >"$out.partial"
mv "$out.partial" "$out"
