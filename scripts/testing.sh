# shellcheck shell=bash disable=SC2154
# Sourced by scripts/check and scripts/check_gpu. Runs test programs in parallel, prints a line for each when it ends (and its whole
# output if it failed), and counts the results. The sourcing script sets `logs`, the folder for the programs' output.
#
#   begin NAME SECONDS COMMAND..   starts a test program in the background, once fewer than $at_once run; SECONDS: its time limit
#   wait_for_all                   waits for all started programs
#   left_out NAME REASON           counts tests that cannot run on this machine as one skipped test, and prints the reason
#   sum_up                         waits, prints the totals, and returns 1 if any test failed
#
# Time limits are multiplied by $slower. If no program ends for 30 seconds, a line lists the running programs and their progress.
# Tests write temporary files to the folder TMPDIR. When the script exits, it kills programs that still run and removes TMPDIR.

mkdir -p "$logs"
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/sptx-check.XXXXXX")
chmod 755 "$TMPDIR" # tests of unreadable files enter it as a user with fewer rights
export TMPDIR
trap stop EXIT
at_once=$(($(nproc) < 8 ? $(nproc) : 8))
slower=1
passed=0 failed=0 skipped=0
declare -A began=() # {name of a running program: $SECONDS when it started}

# When a program ends, its exit code, time limit and name are written to this pipe.
mkfifo "$TMPDIR/ended"
exec {ended}<>"$TMPDIR/ended"

stop() {
    local shell
    for shell in $(jobs -rp); do
        # shellcheck disable=SC2046 # the output may be several process ids
        kill $(cat "/proc/$shell/task/$shell/children") 2>/dev/null
    done
    wait
    rm -rf "$TMPDIR"
}

log_of() { # name
    local log=${1//[\/ ]/-}
    echo "$logs/$log.log"
}

# Prints the sum of all numbers that a sed expression extracts from a text.
total() { # expression text
    sed -nE "$1" <<<"$2" | awk '{ total += $1 } END { print total + 0 }'
}

# Prints the numbers of passed, failed and skipped tests in a log. cmocka prints a line for each of the three; all other programs
# end with "N passed, N failed, N skipped", in any order.
counts_of() { # log
    local text
    if grep -q '^\[==========\]' "$1"; then
        text=$(grep -E '^\[  (PASSED|FAILED|SKIPPED) ' "$1")
        echo "$(total 's/^\[  PASSED  \] ([0-9]+) test\(s\).*/\1/p' "$text")" \
            "$(total 's/^\[  FAILED  \] (.*: )?([0-9]+) test\(s\).*/\2/p' "$text")" \
            "$(total 's/^\[  SKIPPED \] (.*: )?([0-9]+) test\(s\).*/\2/p' "$text")"
    else
        text=$(grep -E '[0-9]+ (passed|failed|skipped|errors?)' "$1" | grep -v 'ERROR SUMMARY' | tail -n 1)
        echo "$(total 's/.*\b([0-9]+) passed.*/\1/p' "$text")" \
            "$(($(total 's/.*\b([0-9]+) failed.*/\1/p' "$text") + $(total 's/.*\b([0-9]+) errors?.*/\1/p' "$text")))" \
            "$(total 's/.*\b([0-9]+) skipped.*/\1/p' "$text")"
    fi
}

# Prints how many tests of a running program have finished, by counting cmocka's result lines or pytest's dots in its log.
tests_so_far() { # log
    local lines
    lines=$(grep -acE '^\[ +(OK|FAILED|SKIPPED) +\]' "$1")
    [ "$lines" -gt 0 ] || lines=$(grep -aoE '^[.sFExX]+' "$1" | tr -d '\n' | wc -c)
    echo "$lines"
}

say_what_runs() {
    local name line=
    for name in "${!began[@]}"; do
        line+="${line:+, }$name ($((SECONDS - ${began[$name]})) s, $(tests_so_far "$(log_of "$name")") tests done)"
    done
    echo "...  $line"
}

# Waits until any program ends, and prints its result. A crash, a timeout or a run without tests counts as one failed test.
wait_for_one() {
    local name log code p f s extra='' limit
    until read -rt 30 -u "$ended" code limit name; do say_what_runs; done
    log=$(log_of "$name")
    read -r p f s <<<"$(counts_of "$log")"
    if [ "$code" -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
        [ "$code" -eq 124 ] && extra=" (stopped after $limit s)" || extra=" (exit code $code)"
    elif [ $((p + f + s)) -eq 0 ]; then
        f=1 extra=" (no test ran)"
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-4s %-32s %4d passed, %d failed, %d skipped  %3d s%s\n' \
        "$([ "$f" -eq 0 ] && echo ok || echo FAIL)" "$name" "$p" "$f" "$s" $((SECONDS - ${began[$name]})) "$extra"
    if [ "$f" -ne 0 ]; then sed 's/^/    | /' "$log"; fi
    unset "began[$name]"
}

wait_for_all() {
    while [ ${#began[@]} -gt 0 ]; do wait_for_one; done
}

begin() { # name seconds command..
    local name=$1 limit=$(($2 * slower)) log
    shift 2
    while [ ${#began[@]} -ge "$at_once" ]; do wait_for_one; done
    began[$name]=$SECONDS
    log=$(log_of "$name")
    : >"$log"
    {
        timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null {ended}>&-
        echo "$? $limit $name" >&"$ended"
    } &
}

left_out() { # name reason
    printf 'skip %-32s %s\n' "$1" "$2"
    skipped=$((skipped + 1))
}

sum_up() {
    wait_for_all
    printf '%d passed, %d failed' $passed $failed
    if [ $skipped -gt 0 ]; then printf ', %d skipped' $skipped; fi
    printf '\n'
    [ $failed -eq 0 ]
}
