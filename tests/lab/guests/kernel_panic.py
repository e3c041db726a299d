"""`systemctl start kpanic` panics a real kernel, which then reboots: `make kernel-panic`, as root.

The lab's guests share their machine's kernel and cannot panic. Here Debian's cloud kernel boots Debian with systemd
in QEMU, without acceleration; `kpanic.service` is started; the console must show the panic, the reboot that
`kernel.panic` asks for, and a second boot from the same disk. QEMU and kernel come from the distribution into the
lab's cache of images; nothing is installed. Not part of `make test-all`: two such boots take a minute and more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
sys.path.insert(0, str(REPOSITORY))

from multinic.lab.guests import image  # noqa: E402

TOOLS = ("linux-image-cloud-amd64", "qemu-system-x86")
PATIENCE = 900.0
"""Seconds until it is given up: a busy machine emulates slowly."""

EXERCISE = """[Unit]
Description=Panics at the first boot, and says so at the second
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'if [ -e /panicked ]; then echo SECOND BOOT >/dev/console; systemctl poweroff --force --force; \\
 else touch /panicked; sync; echo 0 >/proc/sys/kernel/panic; systemctl start kpanic; fi'
"""

EXPECTED = ("Kernel panic - not syncing: sysrq triggered crash", "Rebooting in 10 seconds", "SECOND BOOT")
"""On the console, in this order. The unit itself sets `kernel.panic`, which has been 0."""

VIRTUAL_MACHINE = r"""
set -euo pipefail
mkdir -p upper work root tools-upper tools-work tools
mount -t overlay overlay -o "lowerdir=$SYSTEM,upperdir=upper,workdir=work" root
install -m 755 "$GUEST/bin/kpanic" root/usr/bin/kpanic
install -m 644 "$GUEST/systemd/kpanic.service" exercise.service root/etc/systemd/system/
mkdir -p root/etc/systemd/system/multi-user.target.wants
ln -s ../exercise.service root/etc/systemd/system/multi-user.target.wants/
truncate -s 1G disk.ext4
mkfs.ext4 -q -F -d root disk.ext4
mount -t overlay overlay -o "lowerdir=$TOOLS,upperdir=tools-upper,workdir=tools-work" tools
mount --bind . tools/mnt
mount --bind /dev tools/dev
kernel=$(cd tools/boot && echo vmlinuz-*)
initrd=$(cd tools/boot && echo initrd.img-*)
exec chroot tools qemu-system-x86_64 -accel tcg,tb-size=128 -M pc -cpu qemu64 -m 512 -nodefaults -no-user-config \
  -display none -serial file:/mnt/console -kernel "/boot/$kernel" -initrd "/boot/$initrd" \
  -append "root=/dev/vda rw console=ttyS0 mitigations=off audit=0 tsc=reliable" \
  -drive file=/mnt/disk.ext4,format=raw,if=virtio
"""


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("kernel-panic: its disk is made as root: sudo make kernel-panic")
    environment = {
        **os.environ,
        "SYSTEM": str(image.ensure(print).layers[-1]),
        "TOOLS": str(image.ensure(print, more=TOOLS).layers[-1]),
        "GUEST": str(REPOSITORY / "guest"),
    }
    # /tmp may be too small for a disk.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        (folder / "exercise.service").write_text(EXERCISE)
        # Mounts and QEMU end with this program, however it ends.
        own = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL"]
        began = time.monotonic()
        with subprocess.Popen([*own, "bash", "-c", VIRTUAL_MACHINE], cwd=folder, env=environment) as machine:
            seen = follow(machine, folder / "console", began)
            machine.terminate()
        console = (folder / "console").read_text(errors="replace") if (folder / "console").exists() else ""
    if seen != len(EXPECTED):
        print(console[-4000:])
        sys.exit(f"kernel-panic: never on the console: {EXPECTED[seen]}")


def follow(machine: subprocess.Popen[bytes], console: Path, began: float) -> int:
    """Waits for the expected lines, tells when each came, and returns how many did."""
    seen = 0
    while seen < len(EXPECTED) and time.monotonic() < began + PATIENCE:
        ended = machine.poll() is not None
        text = console.read_text(errors="replace") if console.exists() else ""
        while seen < len(EXPECTED) and EXPECTED[seen] in text:
            print(f"{time.monotonic() - began:6.1f} s  {EXPECTED[seen]}", flush=True)
            seen += 1
        if ended:
            break
        time.sleep(0.2)
    return seen


if __name__ == "__main__":
    main()
