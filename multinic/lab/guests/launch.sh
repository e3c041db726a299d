#!/bin/bash
# Becomes the systemd-nspawn of one guest. Runs in a mount namespace of its own, in the network namespace that holds the guest's
# NICs until nspawn moves them in. Everything it mounts goes with it.
# From the environment: MACHINE, CGROUP, LAYERS, DISK, NIC0, NICS.
set -euo pipefail

# nspawn's locks and sockets, and the guest's root: one set for each guest, as names are unique in a zone only.
mount -t tmpfs -o mode=755 tmpfs /run/systemd
mkdir /run/systemd/root

# A stale /sys shows another namespace's NICs; a writable one makes nspawn wait for udev.
umount --recursive --lazy /sys
mount -t sysfs -o ro sysfs /sys
mount -t cgroup2 none /sys/fs/cgroup

# With --keep-unit the guest's cgroup is the caller's, so each caller needs its own.
mkdir -p "/sys/fs/cgroup/$CGROUP"
echo 0 >"/sys/fs/cgroup/$CGROUP/cgroup.procs"

mount -t overlay overlay -o "lowerdir=$LAYERS,upperdir=$DISK/upper,workdir=$DISK/work" /run/systemd/root

arguments=()
for nic in $NICS; do
  arguments+=("--network-interface=$nic")
done
exec systemd-nspawn --quiet --directory=/run/systemd/root --machine="$MACHINE" --hostname="$MACHINE" \
  --boot --register=no --keep-unit --private-network "${arguments[@]}" --bind-ro="$NIC0:/run/lab/nic0" \
  --resolv-conf=off --timezone=off --link-journal=no --console=read-only
