#!/usr/bin/env bash
# Parses every Bicep file and checks every resource body against Azure's own type
# data. The checker and the data lie in a folder "shared" beside the checkout, or
# where FEEDBOX_SHARED says. Where they are absent the whole check is skipped, and
# says so. It needs Node 20 and, for its first run, the npm registry.
#
# A resource without type data fails, unless its type is in ALLOW_UNCHECKED. A type there is checked
# too as soon as its data is installed; the last line counts those that were not.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
shared=${FEEDBOX_SHARED:-$root/../shared}
cache=$root/.cache/bicep-check
export ALLOW_UNCHECKED=Microsoft.Authorization/locks,Microsoft.KeyVault/vaults,Microsoft.KeyVault/vaults/secrets,Microsoft.Network/networkSecurityGroups

for needed in "$shared/tools/bicep-check/check.mjs" "$shared/azure-types"; do
  if [ ! -e "$needed" ]; then
    printf '\n!!! bicep-check SKIPPED AS A WHOLE: %s is not there.\n!!! No resource was checked against its type. The policy test (go test ./tests/infra) does not do that.\n\n' "${needed#"$root"/}"
    exit 0
  fi
done
command -v node >/dev/null || { echo "bicep-check: FAILED: it needs node"; exit 1; }

mkdir -p "$cache"
cp -f "$shared"/tools/bicep-check/* "$cache/"
chmod -R u+w "$cache"
cd "$cache"
if [ ! -d node_modules/tree-sitter-bicep ] || [ ! -d node_modules/web-tree-sitter ]; then
  npm install --ignore-scripts --no-audit --no-fund --silent
fi
check() { SCHEMADIR=$(cd "$shared/azure-types" && pwd) node check.mjs "$@"; }

# First, that the checker can fail: one mistake of each kind in a copy.
seeded=$(mktemp -d)
trap 'rm -rf "$seeded"' EXIT
seed() { # file, sed expression, what it breaks
  sed "$2" "$root/bicep/modules/$1" >"$seeded/$1"
  if cmp -s "$root/bicep/modules/$1" "$seeded/$1"; then echo "bicep-check: FAILED: the seeded mistake '$3' changes nothing in $1"; exit 1; fi
  if check "$seeded/$1" >/dev/null 2>&1; then echo "bicep-check: FAILED: the seeded mistake '$3' was not found"; exit 1; fi
}
seed servicebus.bicep 's/requiresSession:/requireSession:/' 'unknown property'
seed cosmos.bicep 's/defaultTtl: -1/defaultTtl: '"'-1'"'/' 'wrong type'
seed cosmos.bicep 's/databaseAccountOfferType:.*//' 'missing property'
seed identity.bicep 's/resource identity/resource/' 'syntax error'
seed identity.bicep 's/@2024-11-30/@1999-01-01/' 'no type data'

files=("$root"/bicep/*.bicep "$root"/bicep/modules/*.bicep)
if ! said=$(check "${files[@]}"); then
  echo "$said"
  echo "bicep-check: FAILED"
  exit 1
fi
echo "$said"
unchecked=$(grep -c 'not checked, as allowed' <<<"$said" || true)
resources=$(grep -hE '^resource .*= ' "${files[@]}" | grep -vc ' existing ')
echo "bicep-check: PASSED: ${#files[@]} files parsed, $((resources - unchecked)) resources checked against their types, $unchecked without type data, 5 seeded mistakes found"
