#!/usr/bin/env bash
# Runs Schemathesis, which makes requests from the OpenAPI document, against the API on
# ephemeral emulators: all checks, in single requests and in chains of them.
#
#   tests/conformance/api/run.sh [examples of each operation and phase, default 500]
#
# With ten operations and the fuzzing and stateful phases that is more than 5,000
# examples. It installs the pinned version into .cache. Without python3 it is skipped,
# loudly. The exit code is 1 if anything was found.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=4.32.5
venv=.cache/schemathesis
if ! command -v python3 >/dev/null; then
	echo "SKIPPED: there is no python3, so Schemathesis has not judged the API" >&2
	exit 0
fi
if ! "$venv/bin/python" -c "import importlib.metadata as m; assert m.version('schemathesis') == '$version'" 2>/dev/null; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q "schemathesis==$version"
fi
work=$(mktemp -d)
dev=
stop() {
	if [ -n "$dev" ]; then
		kill -TERM "$dev" 2>/dev/null || true
		wait "$dev" || true
	fi
	rm -rf "$work"
}
trap stop EXIT
go build -o "$work/feedbox-dev" ./cmd/feedbox-dev
FEEDBOX_AUDIT=true "$work/feedbox-dev" --ephemeral --api 127.0.0.1:0 --ops 127.0.0.1:0 --page 127.0.0.1:0 --cosmos 127.0.0.1:0 \
	--servicebus 127.0.0.1:0 --servicebus-admin 127.0.0.1:0 --ready-file "$work/ready.json" >"$work/log" 2>&1 &
dev=$!
for _ in $(seq 150); do
	[ -s "$work/ready.json" ] && break
	kill -0 "$dev" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
	sleep 0.2
done
api=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["api"])' "$work/ready.json")
root=$PWD
cd "$work" # Schemathesis leaves a folder where it runs
"$root/$venv/bin/st" --config-file "$root/tests/conformance/api/schemathesis.toml" run "$api/openapi.json" --checks all \
	--phases examples,coverage,fuzzing,stateful --max-examples "${1:-500}" --continue-on-failure --no-color
