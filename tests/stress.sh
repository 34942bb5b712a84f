#!/usr/bin/env bash
# Runs the tests of the named packages three times at -cpu 1, 2 and 8, in random order, on a
# busy machine: eight processes compute beside them. go test prints the seed of each order
# (-shuffle=SEED repeats it). ROUNDS, RACE=yes and LOAD change what is run. As many packages run at a time as there
# are busy processes, so that each test competes with other tests, too.
set -uo pipefail
cd "$(dirname "$0")/.."
load=()
trap 'kill "${load[@]}"' EXIT
for _ in $(seq "${LOAD:-8}"); do
  (while :; do :; done) &
  load+=($!)
done

run=(go test)
[ "${RACE:-no}" = no ] || run=(tests/race.sh go test)
failed=0
for round in $(seq "${ROUNDS:-3}"); do
  printf '\n=== round %d of %d at load %s (%s)\n' "$round" "${ROUNDS:-3}" "${LOAD:-8}" "$(date +%T)"
  "${run[@]}" -p="${LOAD:-8}" -count=1 -cpu=1,2,8 -shuffle=on -timeout=2h "$@" || failed=1
done
exit $failed
