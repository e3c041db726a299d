"""What a host's NIC may send: bytes beside packets, as clouds limit a VM."""

from __future__ import annotations

from dataclasses import dataclass

from multinic.measure.shell import Shell

QUEUE = "400ms"
"""What waits at a host's cap: longer than other work of this machine keeps a sender from its CPU."""


@dataclass(frozen=True)
class Limit:
    """What each host's NIC may send.

    Attributes:
        megabits: Mbit a second.
        packets: Packets a second.
        burst: Packets that may come at once.
    """

    megabits: float
    packets: float
    burst: int

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.megabits:g} Mbit/s, {self.packets:g} packets/s"

    def scaled(self, factor: float) -> Limit:
        """The same ratio of bytes to packets in a slower world. Bursts stay: a busy machine sends in bursts."""
        return Limit(self.megabits * factor, self.packets * factor, self.burst)

    @property
    def _burst_bytes(self) -> int:
        """Two milliseconds' worth, and some packets: with less tbf does not reach its rate."""
        return max(40_000, int(self.megabits * 256))

    def apply(self, shell: Shell, device: str) -> None:
        """Sets it on a NIC, in place of an earlier one."""
        shell.run(
            [
                *("tc", "qdisc", "replace", "dev", device, "root"),
                *("tbf", "rate", f"{self.megabits * 1000:.0f}kbit", "burst", f"{self._burst_bytes}b", "latency", QUEUE),
            ]
        )
        hook = f'type filter hook egress device "{device}" priority 0'
        rule = f"limit rate over {self.packets:.0f}/second burst {self.burst} packets drop"
        name = "table netdev multinic_limit"
        shell.run(["nft", f"{name}; delete {name}; {name} {{ chain sent {{ {hook}; {rule}; }}; }}"])


LIMITS = (Limit(1000, 34000, 200), Limit(1000, 50000, 1000))
"""Between them lies the published case; clouds limit a VM's packets beside its bytes."""
