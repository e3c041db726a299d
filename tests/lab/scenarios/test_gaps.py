"""What of a gap counts for the event, and what is the machine's own: nothing is excused that is not shown."""

from __future__ import annotations

import pytest

from multinic.lab.scenarios.gaps import Gap, judge

EVENT = 4.5


def caused(gap: Gap, own: list[Gap] | None = None, changes: tuple[float, ...] = ()) -> float:
    return judge([gap], own or [], [EVENT, *changes], EVENT).caused


def test_what_a_control_noticed_at_that_time_is_the_machines_own() -> None:
    assert caused(Gap(5.0, 5.4), [Gap(5.0, 5.3)]) == pytest.approx(0.1)
    assert caused(Gap(5.0, 5.4), [Gap(4.8, 5.2), Gap(5.1, 5.3)]) == pytest.approx(0.1), "of both guests, once"
    assert caused(Gap(5.0, 5.4), [Gap(4.0, 9.0)]) == 0
    assert caused(Gap(5.0, 5.04), [Gap(5.0, 5.04)]) == pytest.approx(0.04), "the pace of both"
    assert caused(Gap(5.0, 5.4)) == pytest.approx(0.4)


def test_a_stall_before_or_after_a_gap_excuses_nothing_of_it() -> None:
    assert caused(Gap(5.0, 5.4), [Gap(4.6, 4.99), Gap(5.41, 5.8)]) == pytest.approx(0.4)
    assert caused(Gap(5.0, 8.0), [Gap(5.1, 5.3)]) == pytest.approx(2.8)


def test_a_short_gap_without_a_change_is_a_lost_packet_and_is_told() -> None:
    found = judge([Gap(7.0, 7.25), Gap(8.0, 8.15)], [], [EVENT], EVENT)
    assert found.lost_packets == [Gap(7.0, 7.25)]
    assert found.caused == pytest.approx(0.15), "no retransmission is as fast as that"


@pytest.mark.parametrize("changes", [(6.5,), (7.1,)], ids=["before it", "while it lasted"])
def test_a_short_gap_beside_a_change_counts(changes: tuple[float, ...]) -> None:
    assert caused(Gap(7.0, 7.25), changes=changes) == pytest.approx(0.25)


def test_a_late_gap_that_a_lost_packet_does_not_explain_counts() -> None:
    """A router that stops forwarding some seconds after the last change that the lab knows of."""
    assert caused(Gap(9.0, 9.6)) == pytest.approx(0.6)
    assert caused(Gap(9.0, 9.6), [Gap(9.1, 9.4)]) == pytest.approx(0.3), "the machine's stall does not make it short"


def test_a_late_gap_that_a_check_ends_counts_from_its_beginning() -> None:
    assert caused(Gap(9.0, 12.1), changes=(11.9,)) == pytest.approx(3.1)


def test_what_was_over_before_the_event_is_not_its_effect() -> None:
    assert caused(Gap(3.0, 4.0)) == 0
    assert caused(Gap(3.0, 4.6)) == pytest.approx(1.6), "still there when it came"
