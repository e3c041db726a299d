#!/usr/bin/env bash
# Runs the unit tests with every Python from 3.11 on that this machine has, or with the versions given (3.12 3.13).
# Each has an environment of its own in the user's cache, so the tests of this clone's set-up are left out.
# OLDEST=1 installs the oldest supported Pulumi packages.
set -euo pipefail
cd "$(dirname "$0")/.."

found() { # prints VERSION PATH of each interpreter, once a version
  local name
  {
    for name in python3 python3.1{1..9}; do command -v "$name" || true; done 2>/dev/null
    for name in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do [ ! -x "$name" ] || printf '%s\n' "$name"; done
  } | while read -r name; do
    "$name" -c 'import sys; v = sys.version_info; v >= (3, 11) and print(f"{v[0]}.{v[1]}", sys.executable)' 2>/dev/null || true
  done | sort -t. -k2 -n -u -k1,1
}

# The lower bounds of pyproject.toml as exact versions.
oldest() { sed -n '/^dependencies = \[/,/^\]/s/.*"\(pulumi[a-z-]*\)>=\([0-9.]*\).*/\1==\2.*/p' pyproject.toml; }

results=()
while read -r version python; do
  [ $# -eq 0 ] || [[ " $* " == *" $version "* ]] || continue
  environment=${XDG_CACHE_HOME:-$HOME/.cache}/multinic/pythons/$version${OLDEST:+-oldest}
  [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
  if [ -n "${OLDEST:-}" ]; then
    mapfile -t bounds < <(oldest)
    "$environment/bin/python" -m pip install --quiet --editable '.[dev,lab]' "${bounds[@]}"
  else
    "$environment/bin/python" -m pip install --quiet --requirement requirements.txt
    "$environment/bin/python" -m pip install --quiet --no-deps --editable .
  fi
  printf '%s: %s\n' "$version" "$("$environment/bin/python" -m pip freeze | grep -E '^pulumi' | tr '\n' ' ')"
  if "$environment/bin/python" -m pytest tests/unit -q -m "not slow" --deselect tests/unit/test_setup.py; then
    results+=("$version passed")
  else
    results+=("$version FAILED")
  fi
done < <(found)
printf '%s\n' "${results[@]}"
[[ "${results[*]}" != *FAILED* ]]
