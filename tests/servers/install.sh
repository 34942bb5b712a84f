#!/usr/bin/env bash
# Installs third-party programs that tests need: a browser, PostgreSQL, PgBouncer, RabbitMQ, promtool
# (Debian's packages, as root) and moto (a Python package, into .cache/moto). It reports what
# cannot be installed; the tests that need it skip.
set -u
cd "$(dirname "$0")/../.."
missing=()
command -v chromium >/dev/null || missing+=(chromium)
[ -d /usr/lib/postgresql ] || missing+=(postgresql)
command -v pgbouncer >/dev/null || missing+=(pgbouncer)
[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
command -v promtool >/dev/null || missing+=(prometheus)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "NOT INSTALLED, their tests will skip: ${missing[*]} (needs root and apt-get)"
  else
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
      echo "NOT INSTALLED, their tests will skip: ${missing[*]} (apt-get failed)"
  fi
fi
# Google's emulator of Firestore is in Google's own repository, which may not be set up here.
if [ ! -f /usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar ] && [ -z "${FIRESTORE_EMULATOR_JAR:-}" ]; then
  { [ "$(id -u)" = 0 ] && apt-cache show google-cloud-cli-firestore-emulator >/dev/null 2>&1 &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends google-cloud-cli-firestore-emulator >/dev/null; } ||
    echo "NOT INSTALLED, its tests will skip: google-cloud-cli-firestore-emulator (Google's apt repository, as root)"
fi
moto=.cache/moto
if [ ! -x $moto/bin/moto_server ]; then
  { python3 -m venv $moto && $moto/bin/pip install -q --disable-pip-version-check 'moto[server]==5.2.5'; } ||
    echo "NOT INSTALLED, its tests will skip: moto (python3 with venv and pip)"
fi
