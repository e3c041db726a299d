#!/bin/bash
# multinic: makes this VM a router. Runs at every boot, and by hand at any time without harm:
#   sudo DEBUG=1 google_metadata_script_runner startup
# One metadata request brings everything; a file is written only when it differs, a service restarted only when its files changed.
set -u
umask 022
[ -z "${DEBUG:-}" ] || set -x
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

# A kernel panic must end in a reboot also before the first `sysctl --system`; containers may not set it.
{ echo 10 >/proc/sys/kernel/panic; } 2>/dev/null || true

python3 -IS - <<'PYTHON'
"""Fetches the metadata, installs the files of the manifest, starts the units."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import time

began = time.monotonic()
LIB, ETC, USER_SCRIPT = "/usr/lib/multinic", "/etc/multinic", "/var/lib/multinic/user-startup-script"
WANTED = "/etc/systemd/system/multi-user.target.wants"
BESIDE = f".multinic-{os.getpid()}"
LOG = "multinic-log.path"
UNITS = [LOG, "policy-routing.service", "policy-routing-watch.service", "hc-traffic.service", "hc-health.service"]
ALLOWED = ("/usr/bin/", "/usr/lib/multinic/", "/etc/systemd/system/", "/etc/sysctl.d/")


def say(event, **fields):
    print(f"multinic-startup {event} " + " ".join(f"{k}={json.dumps(v)}" for k, v in fields.items()), flush=True)


def fetch():
    """Plain sockets: Python's HTTP client takes longer to load than all of this to run."""
    with socket.create_connection(("169.254.169.254", 80), timeout=2) as connection:
        connection.settimeout(10)
        connection.sendall(
            b"GET /computeMetadata/v1/?recursive=true&alt=json HTTP/1.1\r\nHost: metadata.google.internal\r\n"
            b"Metadata-Flavor: Google\r\nConnection: close\r\n\r\n"
        )
        stream = connection.makefile("rb")
        status = stream.readline().split()
        if status[1:2] != [b"200"]:
            raise OSError(f"metadata server: status {status[1:2]}")
        headers = {}
        for line in iter(lambda: stream.readline().strip(), b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(stream.readline().split(b";")[0], 16)
                if size == 0:
                    break
                body += stream.read(size)
                stream.readline()
        else:
            body = stream.read()
        return headers.get("etag", ""), json.loads(body)


def install(files):
    """Replaces what differs: all of it or, on a full or read-only disk, none. Returns "new" or "changed" by path."""
    how = {}
    try:
        for path, content, mode in files:
            try:
                with open(path, "rb") as file:
                    if file.read() == content and os.stat(path).st_mode & 0o7777 == mode:
                        continue
                how[path] = "changed"
            except FileNotFoundError:
                how[path] = "new"
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + BESIDE, "wb") as file:
                file.write(content)
                os.chmod(path + BESIDE, mode)
        for path in how:
            os.replace(path + BESIDE, path)
    except OSError:
        for path in how:
            if os.path.exists(path + BESIDE):
                os.unlink(path + BESIDE)
        raise
    return how


def systemctl(*words):
    return subprocess.run(["systemctl", *words], check=False).returncode


def is_enabled():
    return all(os.path.lexists(f"{WANTED}/{unit}") for unit in UNITS)


def enable():
    """As `systemctl enable`, which would have systemd run all of its generators first."""
    os.makedirs(WANTED, exist_ok=True)
    for unit in UNITS:
        if not os.path.lexists(f"{WANTED}/{unit}"):
            os.symlink(f"/etc/systemd/system/{unit}", f"{WANTED}/{unit}")


end = began + 60
while True:
    try:
        etag, tree = fetch()
        break
    except (OSError, ValueError, IndexError, RecursionError) as error:
        if time.monotonic() > end:
            say("failed", error=str(error))
            sys.exit(1)
        time.sleep(0.2)
fetched = time.monotonic()
try:
    attributes = tree["instance"]["attributes"]
    manifest = [line.split() for line in attributes["multinic-files"].splitlines()]
    files = [(path, attributes[key].encode(), int(mode, 8)) for key, mode, path in manifest]
    if f"{LIB}/metadata.py" not in (path for path, _, _ in files):
        raise ValueError("multinic-files does not name the programs' modules")
    if not all(path.startswith(ALLOWED) and ".." not in path and path.isprintable() for path, _, _ in files):
        raise ValueError("multinic-files puts a file where none of ours belongs")
    if not all(0 <= mode <= 0o777 for _, _, mode in files):
        raise ValueError("multinic-files gives a file a mode that it cannot have")
    files.append((f"{ETC}/config.json", attributes.get("multinic-config", "{}").encode(), 0o644))
    script = attributes.get("multinic-user-startup-script", "").encode()
except (KeyError, TypeError, ValueError, AttributeError) as error:
    say("failed", error=f"metadata: {error!r}")
    sys.exit(1)
if os.path.exists("/usr/lib/systemd/systemd-networkd") or os.path.exists("/lib/systemd/systemd-networkd"):
    # Asks networkd to leave others' rules and routes alone when it starts. It does not always; the watcher repairs.
    drop_in = b"[Network]\nManageForeignRoutingPolicyRules=no\nManageForeignRoutes=no\n"
    files.append(("/etc/systemd/networkd.conf.d/multinic.conf", drop_in, 0o644))
if script:
    files.append((USER_SCRIPT, script, 0o700))

try:
    how = install(files)
    # From the next boot on nothing depends on whoever runs this script.
    enable()
    if not script and os.path.exists(USER_SCRIPT):
        os.unlink(USER_SCRIPT)
except OSError as error:
    # What an earlier boot has installed is whole, and better than no router.
    say("failed", error=f"files cannot be written: {error}", starts_what_is_there=is_enabled())
    if is_enabled():
        systemctl("start", *UNITS)
    sys.exit(1)
with contextlib.suppress(OSError):
    os.makedirs("/etc/iproute2", exist_ok=True)  # Absent on Debian 13; the routing's sandbox opens it if it is there.

sys.path.insert(0, LIB)
sys.dont_write_bytecode = False
import metadata  # noqa: E402
import paths  # noqa: E402
if not os.path.exists(paths.VERDICT):
    # What the routing needs of this answer, so that it need not ask again. Not the rest: it may be secret. Where the
    # router has been at work already, the watcher follows by itself, and what is kept is the last answer that was good.
    with contextlib.suppress(OSError):
        metadata.save(etag, tree)
if any(path.startswith(LIB) for path in how):
    # The services cannot write below /usr, and start faster from compiled modules, which this leaves beside the sources.
    from importlib.machinery import SourceFileLoader
    for name in sorted(os.listdir(LIB)):
        if name.endswith(".py"):
            with contextlib.suppress(SyntaxError):
                SourceFileLoader(name[:-3], f"{LIB}/{name}").get_code(name[:-3])
installed = time.monotonic()

changed = [path for path, kind in how.items() if kind == "changed" and path != USER_SCRIPT]
if any("/systemd/" in path for path in changed):
    systemctl("daemon-reload")
if changed:
    # The routing is reloaded, never restarted: a stop would take the routes away under the connections.
    systemctl("try-reload-or-restart", *UNITS)
# Sending the log may fail, for one where a limit of inotify is used up: it is a router all the same.
code = systemctl("start", *UNITS) and systemctl("start", *(unit for unit in UNITS if unit != LOG))
import events  # noqa: E402
events.emit("started" if code == 0 else "start-failed", "INFO" if code == 0 else "ERROR", code=code, files=len(how),
            request_s=round(fetched - began, 3), install_s=round(installed - fetched, 3),
            units_s=round(time.monotonic() - installed, 3), uptime_s=round(time.monotonic(), 1))
sys.exit(code)
PYTHON
code=$?

# Last, when traffic runs, bounded in time, and whatever comes of it is its own affair.
user=/var/lib/multinic/user-startup-script
if [ "$code" -eq 0 ] && [ -x "$user" ]; then
  timeout --kill-after=10 "${USER_SCRIPT_SECONDS:-300}" "$user" </dev/null ||
    { failed=$? && echo "multinic-startup user-startup-script failed code=$failed" &&
      multinic-log add user-startup-script-failed "code=$failed" --severity WARNING; }
fi
exit "$code"
