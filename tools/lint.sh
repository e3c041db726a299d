#!/usr/bin/env bash
# Every static check in one place; ends with a list of what failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
failed=()

check() { # NAME COMMAND...
  local name=$1 output
  shift
  printf '%s … ' "$name"
  if output=$("$@" 2>&1); then
    printf 'ok\n'
  else
    printf 'failed\n%s\n' "$output"
    failed+=("$name")
  fi
}

shell_scripts() { git ls-files -z | xargs -0 awk 'FNR == 1 && /^#!.*[\/ ](ba)?sh$/ { print FILENAME } { nextfile }'; }
check_shell() { shell_scripts | xargs .venv/bin/shellcheck; }

# systemd-analyze exits with 0 for an unknown key: only silence is success.
verify_units() {
  local said
  said=$(tools/verify_units.sh 2>&1) || return 1
  [ -z "$said" ] || { printf '%s\n' "$said"; return 1; }
}

# actionlint is a Go module; PyPI's package of that name downloads a program from elsewhere.
check_workflows() {
  local go
  go=$(command -v go || ls /usr/local/go/bin/go 2>/dev/null) ||
    { echo "needs Go, to build actionlint"; return 1; }
  "$go" -C tools/actionlint tool actionlint "$PWD"/.github/workflows/*.yml
}

check "ruff check" .venv/bin/ruff check .
check "ruff format" .venv/bin/ruff format --check .
check "mypy --strict" .venv/bin/mypy
check "shellcheck" check_shell
check "systemd-analyze verify" verify_units
check "actionlint" check_workflows
[ ${#failed[@]} -eq 0 ] || { printf 'lint: failed: %s\n' "${failed[*]}" >&2; exit 1; }
