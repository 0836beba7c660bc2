# Shared by the scripts that measure: each sets $work, where logs and results go, and then runs `. scripts/measure.sh` in the
# repository's root.
#
# SPTX_ANCHORS   a directory with speedtorch_bench.py and speedtorch_train.py, which need python3 with cupy and torch, and
#                SpeedTorch's package on PYTHONPATH

program=${SPTX_BIN:-${BUILD:-build}/sptx-w2v}
me=$(basename "$0")
[ -x "$program" ] || { echo "$me: $program is not there; run make" >&2; exit 1; }

# Prints the value of a key in the last JSON line of a file that contains the key.
value() { sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" "$1" | tail -n 1; }
# Prints a number divided by a unit, with this number of digits; prints a dash if there is no number.
scaled() { [ -n "$1" ] && awk -v n="$1" -v u="$2" -v d="$3" 'BEGIN { printf "%.*f", d, n / u }' || printf -- -; }

# Runs a script of SpeedTorch's side; its output goes to $work/NAME.log. If the script is missing, the log is empty.
anchor() { # NAME SCRIPT ARGUMENT...
    log=$work/$1.log script=$2
    shift 2
    : >"$log"
    [ -n "${SPTX_ANCHORS:-}" ] && [ -f "$SPTX_ANCHORS/$script" ] || return 0
    echo "measuring $script $*" >&2
    python3 "$SPTX_ANCHORS/$script" "$@" >"$log" 2>&1 || echo "$me: $script failed; see $log" >&2
}
# Prints the number before a unit in the last line of a log that matches a pattern.
peer() { sed -n "/$2/s/.* \([0-9.]*\)$3.*/\1/p" "$1" | tail -n 1; }
