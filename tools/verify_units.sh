#!/usr/bin/env bash
# Prints what systemd has to say about the guest's units; silence is success, since it exits with 0 for an unknown key.
# Their programs are looked for in a root folder made of guest/ and of this machine's own units.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/bin" "$root/usr/lib/systemd" "$root/etc/systemd/system"
cp guest/bin/* /usr/bin/timeout "$root/usr/bin/"
cp guest/systemd/* "$root/etc/systemd/system/"
cp -a /usr/lib/systemd/system "$root/usr/lib/systemd/"
mapfile -t units < <(cd guest/systemd && printf '%s\n' *)
systemd-analyze verify --root="$root" "${units[@]}"
