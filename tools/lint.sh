#!/usr/bin/env bash
# Every static check in one place; ends with a list of what failed.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()

check() { # NAME COMMAND...
  local name=$1
  shift
  printf '%s … ' "$name"
  if output=$("$@" 2>&1); then
    printf 'ok\n'
  else
    printf 'failed\n%s\n' "$output"
    failed+=("$name")
  fi
}

shell_scripts() { git ls-files | xargs grep -lE '^#!.*\b(ba)?sh$' --; }

# systemd-analyze exits with 0 for an unknown key: only silence is success.
verify_units() {
  command -v systemd-analyze >/dev/null || { echo "systemd-analyze is missing"; return 1; }
  local said
  said=$(tools/verify_units.sh 2>&1) || true
  [ -z "$said" ] || { printf '%s\n' "$said"; return 1; }
}

check "ruff check" .venv/bin/ruff check .
check "ruff format" .venv/bin/ruff format --check .
check "mypy --strict" .venv/bin/mypy
check "shellcheck" bash -c '.venv/bin/shellcheck $(git ls-files | xargs grep -lE "^#!.*\b(ba)?sh$" --)'
check "systemd-analyze verify" verify_units
[ ${#failed[@]} -eq 0 ] || { printf 'lint: failed: %s\n' "${failed[*]}" >&2; exit 1; }
