#!/usr/bin/env bash
# Installs what `make demo` and `make test` need, once: Debian packages (as root on Debian or Ubuntu) and .venv.
# All checks come first; until they have passed nothing is changed. A second run finds its stamp and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VENV=.venv
readonly STAMP=$VENV/.installed
readonly PACKAGES="python3-venv systemd-container mmdebstrap nftables iproute2 conntrack ethtool iperf3"
readonly DISK_NEEDED_MB=3000
PYTHON=${PYTHON:-python3}
work=$(mktemp -d)
child=""

# What is started here ends with this script, also when that is killed.
leash=()
! command -v setpriv >/dev/null || leash=(setpriv --pdeathsig KILL --)

cleanup() {
  [ -z "$child" ] || kill -- "-$child" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

fail() { # SENTENCE...
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Runs a command with its output in a log and shows that time passes; on failure shows the end of the log.
step() { # TITLE COMMAND...
  local title=$1 began=$SECONDS shown=0 every=10
  [ ! -t 1 ] || every=2
  shift
  set -m # a process group of its own, so that all of it can be ended
  ${leash[@]+"${leash[@]}"} "$@" >"$work/log" 2>&1 </dev/null &
  child=$!
  set +m
  printf '%s … ' "$title"
  while kill -0 "$child" 2>/dev/null; do
    sleep 0.5
    if ((SECONDS - began >= shown + every)); then
      shown=$((SECONDS - began))
      printf '%ds ' "$shown"
    fi
  done
  local rc=0
  wait "$child" || rc=$?
  child=""
  if ((rc == 0)); then
    printf 'done\n'
  else
    printf 'failed\n'
    tail -n 12 "$work/log" >&2
  fi
  return "$rc"
}

can_install_packages() { [ "$(id -u)" = 0 ] && [ -x /usr/bin/apt-get ]; }

missing_packages() {
  [ -x /usr/bin/dpkg-query ] || return 0
  local package
  for package in $PACKAGES; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
  done
}

wanted_stamp() {
  { cat pyproject.toml requirements.txt; "$PYTHON" -c 'import sys; print(sys.version)'; pwd; } | sha256sum | cut -d' ' -f1
}

check_python() {
  command -v "$PYTHON" >/dev/null ||
    fail "Python is missing; install Python 3.11 or newer (Debian: apt-get install python3), or name one: make PYTHON=/path/to/python3"
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$PYTHON" --version) is too old; 3.11 or newer is needed. Name one: make PYTHON=/path/to/python3"
}

check_disk() {
  local free
  free=$(df -Pm . | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$DISK_NEEDED_MB" ] ||
    fail "only ${free} MB are free in $(pwd); $DISK_NEEDED_MB MB are needed for the Python packages. Free some space or clone elsewhere."
}

# Asks the mirrors that this machine itself is set up for; fetches one index header and keeps nothing.
check_debian_mirror() {
  local uri
  uri=$(apt-get update --print-uris 2>/dev/null | sed -n "s/^'\\([^']*InRelease\\)'.*/\\1/p" | grep -m1 debian) || true
  [ -n "$uri" ] || fail "apt knows no Debian mirror; add one to /etc/apt/sources.list.d, then run this again."
  "$PYTHON" - "$uri" <<'PROBE' || fail "the Debian mirror $uri does not answer; check the network or /etc/apt/sources.list.d."
import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="HEAD"), timeout=20)
PROBE
}

check_python_registry() {
  "$PYTHON" -m pip --version >/dev/null 2>&1 || return 0 # no pip yet: python3-venv brings it
  local pin
  pin=$(grep -m1 -E '^iniconfig==' requirements.txt)
  "$PYTHON" -m pip download --quiet --no-deps --dest "$work/probe" "$pin" >"$work/log" 2>&1 ||
    fail "the Python package index does not answer ($(tail -n 1 "$work/log")); check the network or pip's configuration."
}

install() { # TITLE PIP-ARGUMENTS...
  step "$1" "$VENV/bin/python" -m pip install --quiet "${@:2}" ||
    fail "pip could not go on; its last lines stand above."
}

check_python
stamp=$(wanted_stamp)
installed=$(cat "$STAMP" 2>/dev/null || true)
missing=$(missing_packages)
if [ -n "$missing" ] && ! can_install_packages; then
  printf 'Not installed, as this is not root on Debian or Ubuntu (guests need them): %s\n' "$missing"
  missing=""
fi

if [ "$installed" != "$stamp" ]; then
  check_disk
  check_python_registry
fi
if [ -n "$missing" ]; then
  check_debian_mirror
  step "Reading the Debian package lists" apt-get update || fail "apt-get update failed; its last lines stand above."
  # shellcheck disable=SC2086 # a list of names
  step "Installing Debian packages ($missing)" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends $missing ||
    fail "apt-get install failed; its last lines stand above."
fi
if [ "$installed" != "$stamp" ]; then
  "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "Python's venv module is missing (Debian: apt-get install python3-venv)."
  step "Making $VENV" "$PYTHON" -m venv "$VENV" || fail "$VENV could not be made; the reason stands above."
  install "Installing Python packages into $VENV" --requirement requirements.txt
  install "Installing multinic itself" --no-deps --no-build-isolation --editable .
  printf '%s\n' "$stamp" >"$STAMP"
fi
