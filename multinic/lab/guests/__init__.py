"""The lab's VMs: systemd-nspawn guests on a cached image, their metadata server, and a shell into them."""
