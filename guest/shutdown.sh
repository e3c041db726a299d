#!/bin/bash
# multinic: drains this router. New connections go to others as soon as the load balancer has seen the closed port;
# those that are here go on until this script ends. By hand: sudo google_metadata_script_runner shutdown
set -u
[ -z "${DEBUG:-}" ] || set -x
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

systemctl stop hc-traffic.service

# interval × unhealthy threshold + margin, worked out where the checks are made; 25 s at most, since a spot VM has 30.
seconds=$(python3 -IS -c '
import json
try:
    with open("/etc/multinic/config.json") as file:
        seconds = float(json.load(file).get("drain_seconds", 5))
except (OSError, ValueError, TypeError, AttributeError):
    seconds = 5
print(min(max(seconds, 0), 25))')
multinic-log add drained reason=shutdown wait_s="${seconds:-5}" --severity NOTICE
# At shutdown nobody else sends it any more; bounded by the wait.
timeout "${seconds:-5}" multinic-log flush --now &
sleep "${seconds:-5}"
