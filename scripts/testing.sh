# shellcheck shell=bash disable=SC2154
# Sourced by scripts/check and scripts/check_gpu. Runs test programs beside one another, prints a line for each as it ends (its whole
# output where it failed), and adds up. Whoever sources it sets `logs`, a folder.
#
#   begin NAME SECONDS COMMAND..   runs a test program in the background, as soon as fewer than $at_once run; SECONDS is its limit
#   wait_for_all                   waits until all that was begun has ended
#   left_out NAME REASON           counts and prints what cannot be tested here
#   sum_up                         waits, prints the last line, and returns 1 where anything failed
#
# $slower multiplies the limits. Where no program ends for half a minute, a line says which are running and how far they are. The
# tests' temporary files go into a folder, TMPDIR, which is removed at the end, as is what still runs then.

mkdir -p "$logs"
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/sptx-check.XXXXXX")
chmod 755 "$TMPDIR" # tests of what may not be read enter it with fewer rights
export TMPDIR
trap stop EXIT
at_once=$(($(nproc) < 8 ? $(nproc) : 8))
slower=1
passed=0 failed=0 skipped=0
declare -A began=() # of each program that runs: the second of its begin

# A program that ends writes its exit code, its limit and its name into this pipe.
mkfifo "$TMPDIR/ended"
exec {ended}<>"$TMPDIR/ended"

stop() {
    local shell
    for shell in $(jobs -rp); do
        # shellcheck disable=SC2046 # several processes
        kill $(cat "/proc/$shell/task/$shell/children") 2>/dev/null
    done
    wait
    rm -rf "$TMPDIR"
}

log_of() { # name
    local log=${1//[\/ ]/-}
    echo "$logs/$log.log"
}

# Adds the numbers that a sed expression finds in a text.
total() { # expression text
    sed -nE "$1" <<<"$2" | awk '{ total += $1 } END { print total + 0 }'
}

# Prints how many tests passed, failed and were skipped. A cmocka program has a line for each of the three; any other program ends
# with "N passed, N failed, N skipped", in any order.
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

# Prints how many tests of a running program have ended: cmocka's lines, or pytest's dots.
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

# Waits for a program to end, and prints its line. One that died, or ran no test, is one failure more.
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
