#!/bin/bash
# Becomes the Docker Engine of one node: process 1 of a process namespace, in a mount namespace of its own and in the network
# namespace that it was started in. All that it mounts and starts goes with it.
# From the environment: NODE (host name), IMAGE (read-only root with docker.io), FOLDER (for its socket), CGROUP.
set -euo pipefail

# In memory: overlay2 does not lie on another overlay, and nothing of it shall stay.
mount -t tmpfs -o mode=755 tmpfs "$FOLDER"
mkdir "$FOLDER/upper" "$FOLDER/work" "$FOLDER/root" "$FOLDER/docker"
mount -t overlay overlay -o "lowerdir=$IMAGE,upperdir=$FOLDER/upper,workdir=$FOLDER/work" "$FOLDER/root"
cd "$FOLDER/root"
mkdir -p var/lib/docker proc sys dev run old
mount --bind "$FOLDER/docker" var/lib/docker
mount -t tmpfs -o mode=755 tmpfs run
mount -t proc proc proc
# A stale /sys would show another namespace's NICs and hide the control groups.
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
# Nothing is pulled: a name server that refuses at once spares the engine its waiting for a registry.
echo "nameserver 127.0.0.1" >etc/resolv.conf
echo "127.0.0.1 localhost $NODE" >etc/hosts
hostname "$NODE"
pivot_root . old
umount --lazy /old
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
exec dockerd --host unix:///run/docker.sock --data-root /var/lib/docker --exec-root /run/docker --pidfile /run/docker.pid \
  --cgroup-parent="/$CGROUP" --storage-driver=overlay2 --iptables=true --default-address-pool "base=$POOL,size=24"
