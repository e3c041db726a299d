"""What the library costs a Pulumi program, and `multinic --help` its user, as ratios: `make library-benchmark`.

Each figure is measured in processes of its own, in CPU time, and is the median of some runs. Pulumi's mocks take the
engine's place. "The program" is the region stack from its first line to its last: configuration, rules, the guest's
files, and the constructors of all resources. What the SDK does for the registrations afterwards is told apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
from typing import Any

from tests.unit.conftest import REPOSITORY

SHAPES = {"1 x 3 x 2": (1, 3, 2), "10 x 3 x 4": (10, 3, 4), "20 x 3 x 4": (20, 3, 4), "40 x 3 x 4": (40, 3, 4)}
"""Regions, zones a region, networks."""

_REGION = """
import json, time
begin = time.process_time()
import pulumi, pulumi_gcp as gcp, pulumi_random
for name in "Address Autoscaler Firewall ForwardingRule HealthCheck InstanceGroupManager InstanceTemplate".split():
    getattr(gcp.compute, name)
gcp.compute.RegionBackendService, gcp.compute.Route, gcp.projects.IAMMember, gcp.serviceaccount.Account
pulumi_random.RandomId
sdk = time.process_time()
import yaml, stacks, stacks.region
from multinic import testing
from stacks import links
config = yaml.safe_load(open("Pulumi.us-west1.yaml"))["config"]
names = {}
for n in ("left", "right"):
    names[links.network_key(n)] = f"projects/lab/global/networks/{n}"
    names[links.subnetwork_key(n, "us-west1")] = f"projects/lab/regions/us-west1/subnetworks/{n}"
mocks = testing.Mocks(stacks={"organization/multinic/networks": names, "organization/multinic/us-east1": {}})
loaded = time.process_time()
import gc
gc.collect = lambda: 0  # part of the test run, not of a program
spent = []
def program():
    first = time.process_time()
    stacks.run()
    spent.append(time.process_time() - first)
declared = testing.run(program, config=config, given=mocks, stack="us-west1")
registered = time.process_time() - loaded - spent[0]
count = len(declared.resources)
found = {"sdk": sdk - begin, "library": loaded - sdk, "program": spent[0], "registered": registered, "resources": count}
print(json.dumps(found))
"""

_MANY = """
import collections, json, sys, threading, time
import pulumi, pulumi_gcp as gcp
from multinic import MultinicRouter, guest_files, testing
from multinic.parsing import router
from multinic.problems import Problems
kind, count = sys.argv[1:3]
regions, zones, networks = map(int, sys.argv[3:])
def args(n):
    region = f"us-test{n}"
    nets = [dict(network=f"projects/lab/global/networks/n{i}", cidrs=[f"10.{i}.{n}.0/24"],
        subnetwork=f"projects/lab/regions/{region}/subnetworks/s{i}") for i in range(networks)]
    machine = dict(image="projects/debian-cloud/global/images/debian-12-bookworm-v20260921")
    return dict(region=region, zones=[f"{region}-{z}" for z in "abcdef"[:zones]], networks=nets, machine=machine)
def plain(n):
    parent = pulumi.ComponentResource("benchmark:index:Plain", f"plain-{n}")
    child, link = pulumi.ResourceOptions(parent=parent), "projects/lab/global/networks/n0"
    for i in range(49):
        rule = dict(network=link, next_hop_ilb=link, dest_range=f"10.{i}.{n}.0/24", opts=child)
        link = gcp.compute.Route(f"plain-{n}-{i}", **rule).network
def program():
    for n in range(regions):
        plain(n) if kind == "plain" else MultinicRouter(f"router-{n}", args(n))
testing.run(lambda: MultinicRouter("warm", args(0)))
calls = collections.Counter()
def note(frame, event, arg):
    calls[threading.get_ident()] += event == "call"
if count == "calls":
    threading.setprofile(note)
    sys.setprofile(note)
begin = time.process_time()
declared = testing.run(program)
seconds = time.process_time() - begin
sys.setprofile(None)
sizes = [len(k) + len(v.encode()) for k, v in guest_files.render(router(args(0), Problems()).fleet).items()]
print(json.dumps({"seconds": seconds, "resources": len(declared.resources), "all": sum(sizes), "key": max(sizes),
    "calls": sum(calls.values()), "reads": guest_files.read_files.cache_info().misses}))
"""


def run(code: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def per(found: dict[str, Any], what: str) -> float:
    return float(found[what] / found["resources"])


def grown(runs: dict[str, dict[str, Any]], name: str, base: str) -> float:
    return per(runs[name], "seconds") / per(runs[base], "seconds")


def seconds(*command: str) -> float:
    """CPU time of a Python process."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], cwd=REPOSITORY, capture_output=True, check=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each figure (default 5)")
    repeat = parser.parse_args().repeat
    region = [run(_REGION) for _ in range(repeat)]
    own = statistics.median((one["library"] + one["program"]) / one["sdk"] for one in region)
    print("A region stack (us-west1), CPU time")
    print(f"  library and program / import of the SDK : {own:.2f}   (at most 0.25)")
    registered = statistics.median(one["registered"] / one["sdk"] for one in region)
    print(f"  the SDK's registrations / its import    : {registered:.2f}   ({region[0]['resources']} resources)")
    rounds = [
        {
            kind: {name: run(_MANY, kind, "time", *shape) for name, shape in SHAPES.items()}
            for kind in ("router", "plain")
        }
        for _ in range(repeat)
    ]
    base = "10 x 3 x 4"
    called = {name: per(run(_MANY, "router", "calls", *shape), "calls") for name, shape in SHAPES.items()}
    print(f"Regions x zones x networks in one program, a resource's cost beside that of {base} (1.0 is linear):")
    print("  Python functions called, CPU time, and CPU time in a program of as many plain resources without multinic")
    for name, one in rounds[0]["router"].items():
        own, sdk = (
            statistics.median(grown(kinds[kind], name, base) for kinds in rounds) for kind in ("router", "plain")
        )
        resources = f"{one['resources']} resources"
        print(f"  {name:<11}: calls {called[name] / called[base]:.2f}, time {own:.2f}, plain {sdk:.2f}   {resources}")
    last = rounds[0]["router"]["40 x 3 x 4"]
    print("Metadata of one router between four networks")
    print(f"  all together : {last['all'] / 1024:.0f} KB of 200; largest key {last['key'] / 1024:.0f} KB of 64")
    print(f"  readings of the guest's files in a run of 40 regions: {last['reads']}")
    spent = [
        seconds("-m", "multinic", "--help") / (seconds("-c", "pass") + seconds("-c", "import typer"))
        for _ in range(3 * repeat)
    ]
    print(f"multinic --help / Python and Typer, CPU time : {statistics.median(spent):.2f}   (at most 2)")


if __name__ == "__main__":
    main()
