#!/usr/bin/env bash
# The tests of the packages that are named, under the race detector.
#
# The detector of Go 1.26 can crash by itself when a timer of a synctest bubble fires
# (SIGSEGV in racecall, below timer.unlockAndRun; seen in packages changefeed and
# tests/sim/world), or fail a check of its own (tsan_rtl.cpp, seen in tests/sim). Packages
# that ended so run again, twice at most, if no test and no race has failed among all that
# ran. It makes changefeed take minutes, and some more where the machine is busy.
set -uo pipefail
cd "$(dirname "$0")/.."
export GORACE="suppressions=$PWD/tests/race-suppressions.txt"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

flags=()
[ "$1" != -run ] || { flags=("$1" "$2"); shift 2; }
for try in 1 2 3; do
  go test -race -timeout 30m "${flags[@]}" "$@" 2>&1 | tee "$out" && exit 0
  grep -qE -- '--- FAIL|DATA RACE|^panic: |\[build failed\]' "$out" && exit 1
  { grep -q '^SIGSEGV' "$out" && grep -q '<racecall+' "$out"; } || grep -q '^ThreadSanitizer: CHECK failed' "$out" || exit 1
  mapfile -t crashed < <(awk '$1 == "FAIL" && NF > 1 {print $2}' "$out")
  [ ${#crashed[@]} -gt 0 ] || exit 1
  echo "the race detector crashed in ${crashed[*]} (try $try of 3)"
  set -- "${crashed[@]}"
done
exit 1
