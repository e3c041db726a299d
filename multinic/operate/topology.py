"""What lies around a fleet: networks, subnets, firewall rules, and the two ends of a flow.

Read in five requests and one for each network, whose firewall policies are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from multinic.operate import links
from multinic.operate.api import Api
from multinic.operate.errors import OperateError, WordError
from multinic.operate.firewall import Policy, Rule
from multinic.operate.fleet import Fleet


@dataclass(frozen=True)
class Network:
    """A VPC network, its path and its MTU in bytes."""

    link: str
    name: str
    mtu: int


@dataclass(frozen=True)
class Subnet:
    """A subnetwork: its path, its network's path, its region, and its ranges (the secondary ones too)."""

    link: str
    network: str
    region: str
    ranges: tuple[IPv4Network, ...]


@dataclass(frozen=True)
class End:
    """One end of a flow.

    Attributes:
        title: The VM's name, or the address.
        address: Its address.
        network: Path of its network; empty where it lies in no subnet.
        region: Its region; empty likewise.
        tags: The VM's network tags.
        account: The VM's service account.
        machine: Whether it is a VM.
        running: Whether the VM runs.
    """

    title: str
    address: IPv4Address
    network: str = ""
    region: str = ""
    tags: frozenset[str] = frozenset()
    account: str = ""
    machine: bool = False
    running: bool = True


@dataclass(frozen=True)
class Topology:
    """Networks, subnets and firewall rules of the fleet's projects, and the policies in the fleet's networks."""

    networks: tuple[Network, ...]
    subnets: tuple[Subnet, ...]
    rules: tuple[Rule, ...]
    policies: tuple[Policy, ...] = ()

    def network(self, link: str) -> Network | None:
        """A network by path."""
        return next((network for network in self.networks if network.link == link), None)

    def name(self, link: str) -> str:
        """A network's name, for people."""
        return links.name(link) or "no network"

    def subnet_of(self, address: IPv4Address, networks: Sequence[str]) -> Subnet | None:
        """The subnet of one of these networks that has an address."""
        for subnet in self.subnets:
            if subnet.network in networks and any(address in one for one in subnet.ranges):
                return subnet
        return None


def read(api: Api, fleet: Fleet, words: Sequence[str] = ()) -> tuple[Topology, list[End]]:
    """Reads what lies around, and the ends that are named.

    Args:
        api: Reads.
        fleet: The fleet.
        words: Names or addresses of VMs, or other addresses.

    Raises:
        WordError: A name is no VM's.
    """
    projects = sorted({links.project(hop.network_link) for hop in fleet.hops} | {fleet.project})
    jobs: list[Any] = []
    for project in projects:
        jobs += [
            partial(api.items, "Networks", project=project),
            partial(api.items, "Subnetworks", "aggregated_list", project=project),
            partial(api.items, "Firewalls", project=project),
        ]
    jobs += [partial(_machines, api, project, word) for word in words for project in projects]
    jobs += [partial(_policies, api, hop.network_link) for hop in fleet.hops]
    answers = api.together(*jobs)
    count = 3 * len(projects)
    topology = Topology(
        tuple(Network(links.path(n.self_link), n.name, n.mtu or 1460) for a in answers[0:count:3] for n in a),
        tuple(_subnet(one) for answer in answers[1:count:3] for one in answer if one.ip_cidr_range),
        tuple(rule for answer in answers[2:count:3] for one in answer if (rule := Rule.of(one)) is not None),
        tuple(policy for answer in answers[len(answers) - len(fleet.hops) :] for policy in answer),
    )
    ends = []
    for number, word in enumerate(words):
        first = count + number * len(projects)
        found = [machine for answer in answers[first : first + len(projects)] for machine in answer]
        ends.append(_end(topology, fleet, word, found))
    return topology, ends


def _policies(api: Api, network: str) -> list[Policy]:
    try:
        where = {"project": links.project(network), "network": links.name(network)}
        return Policy.of(network, api.get("Networks", "get_effective_firewalls", **where))
    except OperateError as error:
        # Whoever may read rules may not read policies: that keeps nobody from the rest.
        return [Policy(network, unknown=str(error))]


def _machines(api: Api, project: str, word: str) -> list[Any]:
    address = _address(word)
    if address is None and not links.is_name(word):
        return []
    # The API's filter does not reach into the list of NICs, so an address needs the whole list.
    only = {} if address else {"filter": f'name = "{word}"'}
    found = api.items("Instances", "aggregated_list", project=project, **only)
    if address is None:
        return found
    return [one for one in found if any(nic.network_i_p == str(address) for nic in one.network_interfaces)]


def _end(topology: Topology, fleet: Fleet, word: str, machines: list[Any]) -> End:
    address = _address(word)
    if not machines:
        if address is None:
            raise WordError(f"no VM of project {fleet.project} is called {word}; give a VM's name or an IPv4 address")
        subnet = topology.subnet_of(address, [hop.network_link for hop in fleet.hops])
        return End(word, address, subnet.network if subnet else "", subnet.region if subnet else "")
    machine = machines[0]
    if len(machines) > 1:
        zones = ", ".join(links.name(one.zone) for one in machines)
        raise WordError(f"there are several VMs {word} ({zones}); give the address")
    nics = list(machine.network_interfaces)
    ours = {hop.network_link for hop in fleet.hops}
    fitting = (
        [nic for nic in nics if nic.network_i_p == word] or [n for n in nics if links.path(n.network) in ours] or nics
    )
    nic, accounts = fitting[0], list(machine.service_accounts)
    return End(
        title=machine.name,
        address=IPv4Address(nic.network_i_p),
        network=links.path(nic.network),
        region=links.name(machine.zone).rpartition("-")[0],
        tags=frozenset(machine.tags.items),
        account=accounts[0].email if accounts else "",
        machine=True,
        running=machine.status == "RUNNING",
    )


def _address(word: str) -> IPv4Address | None:
    try:
        return IPv4Address(word)
    except ValueError:
        return None


def _subnet(one: Any) -> Subnet:
    ranges = [one.ip_cidr_range, *(more.ip_cidr_range for more in one.secondary_ip_ranges)]
    return Subnet(
        links.path(one.self_link), links.path(one.network), links.name(one.region), tuple(map(IPv4Network, ranges))
    )
