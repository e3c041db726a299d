"""A small model of how Linux chooses a route: rules by priority, the longest prefix in a table, blackholes end it."""

from functools import cache
from ipaddress import IPv4Address, IPv4Network

from wanted import BASE_RULES, LOCAL, MAIN, Route, Rule, Wanted


@cache
def _network(text: str) -> IPv4Network:
    return IPv4Network("0.0.0.0/0" if text in ("all", "default") else text)


class Kernel:
    """Routes and rules as the kernel would hold them with the wanted state in place."""

    def __init__(self, target: Wanted) -> None:
        first = target.links[0]
        own = [Route(LOCAL, link.address, link.device, kind="local") for link in target.links]
        # The image's own network service has put nic0's default route into main.
        main = [Route(MAIN, "default", first.device, "gateway")]
        self.routes = [*target.routes, *own, *main]
        self.rules = sorted([*target.rules, *BASE_RULES], key=lambda rule: rule.priority)

    def lookup(self, source: str, destination: str, iif: str) -> str:
        """`iif` is ``lo`` for what the VM itself sends. Returns an interface, ``local`` or ``drop``."""
        for rule in self.rules:
            if not self._matches(rule, source, destination, iif):
                continue
            if rule.table == 0:
                return "drop"
            route = self._longest(rule.table, destination)
            if route is not None:
                return {"local": "local", "blackhole": "drop"}.get(route.kind, route.device)
        return "drop"

    @staticmethod
    def _matches(rule: Rule, source: str, destination: str, iif: str) -> bool:
        return (
            IPv4Address(source) in _network(rule.source)
            and IPv4Address(destination) in _network(rule.destination)
            and rule.iif in ("", iif)
        )

    def _longest(self, table: int, destination: str) -> Route | None:
        fits = [r for r in self.routes if r.table == table and IPv4Address(destination) in _network(r.destination)]
        return max(fits, key=lambda route: _network(route.destination).prefixlen, default=None)
