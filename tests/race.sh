#!/usr/bin/env bash
# Runs a go test command under the race detector: tests/race.sh go test [flags] PACKAGES. Flags
# have the form -name=value.
#
# The detector of Go 1.26 can crash by itself when a timer of a synctest bubble fires (SIGSEGV
# in racecall, below timer.unlockAndRun; seen in packages changefeed and tests/sim/world), or
# fail a check of its own (tsan_rtl.cpp, seen in tests/sim and changefeed). Packages that ended so run
# again, 14 times at most because changefeed ends so in up to half of its runs, if no test failed and
# no race was found in any package. The detector makes changefeed take minutes, and more on a busy machine.
set -uo pipefail
cd "$(dirname "$0")/.."
export GORACE="suppressions=$PWD/tests/race-suppressions.txt"
out=$(mktemp)
trap 'rm -f "$out"' EXIT

[ "${1-} ${2-}" = "go test" ] || { echo "usage: tests/race.sh go test [flags] PACKAGES"; exit 2; }
shift 2
flags=(-race -timeout=1h)
while [[ "${1-}" == -* ]]; do flags+=("$1"); shift; done
for try in {1..15}; do
  go test "${flags[@]}" "$@" 2>&1 | tee "$out" && exit 0
  grep -qE -- '--- FAIL|DATA RACE|^panic: |\[build failed\]' "$out" && exit 1
  { grep -q '^SIGSEGV' "$out" && grep -q '<racecall+' "$out"; } || grep -q '^ThreadSanitizer: CHECK failed' "$out" || exit 1
  mapfile -t crashed < <(awk '$1 == "FAIL" && NF > 1 {print $2}' "$out")
  [ ${#crashed[@]} -gt 0 ] || exit 1
  echo "the race detector crashed in ${crashed[*]} (try $try of 15)"
  set -- "${crashed[@]}"
done
exit 1
