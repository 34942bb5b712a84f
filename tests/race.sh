#!/usr/bin/env bash
# The tests of the packages that are named, under the race detector.
#
# The detector of Go 1.26 can crash by itself when a timer of a synctest bubble fires
# (SIGSEGV in racecall, below timer.unlockAndRun; seen in package changefeed). Packages
# that ended so are run once more, if no test and no race has failed in the whole run.
set -uo pipefail
cd "$(dirname "$0")/.."
export GORACE="suppressions=$PWD/tests/race-suppressions.txt"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
go test -race "$@" 2>&1 | tee "$out" && exit 0
if grep -qE -- '--- FAIL|DATA RACE|^panic: |\[build failed\]' "$out" || ! grep -q '^SIGSEGV' "$out" || ! grep -q '<racecall+' "$out"; then
  exit 1
fi
mapfile -t crashed < <(awk '$1 == "FAIL" && NF > 1 {print $2}' "$out")
[ ${#crashed[@]} -gt 0 ] || exit 1
echo "the race detector crashed in ${crashed[*]}: once more"
go test -race "${crashed[@]}"
