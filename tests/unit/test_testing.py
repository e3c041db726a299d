"""The mocks that importers get: what they promise, and that a test with them can fail."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pulumi
import pulumi_gcp as gcp
import pytest

from multinic import MultinicRouter, testing
from tests.unit.shapes import router_args


def test_three_lines_are_enough() -> None:
    declared = testing.run(lambda: MultinicRouter("router", router_args()))
    assert declared.one("compute.Route", "nic0")["priority"] == 900


def test_canary_false_assertion_in_an_apply_fails() -> None:
    def program() -> None:
        router = MultinicRouter("router", router_args())

        def judge(addresses: list[str]) -> None:
            assert addresses == ["this is wrong"]

        router.addresses.apply(judge)

    with pytest.raises(AssertionError):
        testing.run(program)


def test_canary_forgotten_await_fails() -> None:
    async def judge() -> None:
        raise AssertionError("never reached")

    def program() -> None:
        judge()  # type: ignore[unused-coroutine]

    with pytest.raises(RuntimeError, match="was never awaited: what it should have done or checked did not happen"):
        testing.run(program)


def test_leftovers_are_not_held_against_a_program() -> None:
    async def left_behind() -> None:
        raise AssertionError("never reached")

    leftovers: list[object] = [left_behind()]  # what an earlier run left, freed during this one

    # A line inside Pulumi that makes a coroutine and drops it, as `StackReference.get_output` may when a run ends.
    inside: dict[str, Callable[[], None]] = {}
    place = str(Path(pulumi.__file__).with_name("inside.py"))
    exec(compile("def drop():\n    left_behind()\n", place, "exec"), {"left_behind": left_behind}, inside)

    def program() -> None:
        leftovers.clear()
        inside["drop"]()

    testing.run(program)


def test_async_programs_are_awaited() -> None:
    async def program() -> None:
        await asyncio.sleep(0)
        raise ValueError("reached")

    with pytest.raises(ValueError, match="reached"):
        testing.run(program)


@pytest.mark.parametrize("delay", [0, 0.05])
def test_canary_failed_task_fails(delay: float) -> None:
    async def judge() -> None:
        await asyncio.sleep(delay)
        raise AssertionError("seen")

    def program() -> None:
        asyncio.ensure_future(judge())  # noqa: RUF006 - nobody keeps it

    with pytest.raises(AssertionError, match="seen"):
        testing.run(program)


def test_an_async_test_is_told_to_be_a_plain_one() -> None:
    async def test() -> None:
        testing.run(lambda: None)

    with pytest.raises(RuntimeError, match=r"testing\.run has an event loop of its own; call it from a plain function"):
        asyncio.run(test())
    testing.run(lambda: None)  # and nothing of it is held against the next one


def test_canary_two_resources_of_one_name_fail() -> None:
    def program() -> None:
        gcp.compute.Network("net")
        gcp.compute.Network("net")

    with pytest.raises(Exception, match="net"):
        testing.run(program)


def test_canary_a_stack_that_is_read_twice_fails() -> None:
    def program() -> None:
        pulumi.StackReference("organization/nets/prod")
        pulumi.StackReference("organization/nets/prod")

    with pytest.raises(pulumi.RunError, match=r"two resources are named .*organization/nets/prod"):
        testing.run(program, given=testing.Mocks(stacks={"organization/nets/prod": {}}))


def test_secrets_are_plain_and_named() -> None:
    def program() -> None:
        network = gcp.compute.Network("net", description=pulumi.Output.secret("x"))
        pulumi.export("plain", network.name)
        pulumi.export("secret", {"a": [pulumi.Output.secret(1)]})

    declared = testing.run(program)
    assert declared.one("Network")["description"] == "x"
    assert declared.outputs["secret"] == {"a": [1]}
    assert declared.secret_outputs == ["secret"]


def test_links_are_those_of_the_provider_that_is_given() -> None:
    def program() -> None:
        given = pulumi.ResourceOptions(provider=gcp.Provider("own", project="own-project", region="us-east1"))
        pulumi.export("address", gcp.compute.Address("address", opts=given).self_link)
        pulumi.export("network", gcp.compute.Network("network").self_link)

    outputs = testing.run(program).outputs
    assert "/own-project/regions/us-east1/addresses/address-" in outputs["address"]
    assert "/lab/global/networks/network-" in outputs["network"]


def test_mocks_can_be_given_to_one_run_after_the_other() -> None:
    mocks = testing.Mocks()
    for name in "ab":
        declared = testing.run(lambda name=name: pulumi.export("name", gcp.compute.Network(name).name), given=mocks)  # type: ignore[misc]
        assert [one.name for one in declared.resources] == [name]


def test_a_failed_run_leaves_nothing_to_the_next_one() -> None:
    class Broken(testing.Mocks):
        def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
            raise ValueError("no answer")

    args = router_args()
    del args["zones"]
    with pytest.raises(ValueError, match="no answer"):
        testing.run(lambda: MultinicRouter("router", args), given=Broken())
    assert len(testing.run(lambda: MultinicRouter("router", router_args())).all("Route")) == 2


def test_a_failed_run_says_nothing_later(caplog: pytest.LogCaptureFixture) -> None:
    # Said while Python's parser works, it makes that fail: "AST constructor recursion depth mismatch", cpython#106905.
    def program() -> None:
        pulumi.export("name", [gcp.compute.Network("net").name for _ in range(2)])

    gc.collect()
    caplog.clear()  # of what others left
    with pytest.raises(Exception, match="two resources are named"):
        testing.run(program)
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_run_that_went_well_says_which_exception_nobody_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    async def program() -> None:
        asyncio.get_running_loop().create_future().set_exception(ValueError("nobody asks"))

    testing.run(program)
    assert "never retrieved" in caplog.text
    assert "nobody asks" in caplog.text


def test_nothing_is_left_in_pulumis_settings() -> None:
    before = (pulumi.get_project(), pulumi.get_stack(), pulumi.runtime.is_dry_run())
    threads = set(threading.enumerate())
    testing.run(lambda: MultinicRouter("router", router_args()), preview=True, project="p", stack="s")
    assert (pulumi.get_project(), pulumi.get_stack(), pulumi.runtime.is_dry_run()) == before
    left = set(threading.enumerate()) - threads
    for thread in left:  # one that is ending may be there for a moment
        thread.join(60)
    assert not [thread for thread in left if thread.is_alive()]


def test_a_preview_does_not_know_what_only_the_cloud_can_say() -> None:
    seen: list[object] = []

    def program() -> None:
        router = MultinicRouter("router", router_args())
        router.addresses.apply(seen.append)
        pulumi.export("address", router.addresses)

    assert testing.run(program).outputs["address"] == [seen[0][0], seen[0][1]]  # type: ignore[index]
    seen.clear()
    declared = testing.run(program, preview=True)
    assert seen == []
    assert not isinstance(declared.outputs["address"], list)


def test_same_shape_in_preview_and_deployment() -> None:
    up, preview = (testing.run(lambda: MultinicRouter("router", router_args(3)), preview=p) for p in (False, True))
    assert up.urns == preview.urns


def test_what_was_declared_has_the_same_order_in_every_run() -> None:
    def program(names: Sequence[str]) -> None:
        for name in names:
            gcp.compute.Network(name)
            gcp.compute.get_image(name=name)

    one, other = (testing.run(lambda names=names: program(names)) for names in ("abcd", "dcba"))  # type: ignore[misc]
    assert [network.name for network in one.all("Network")] == [*"abcd"]
    assert (one.urns, one.calls) == (other.urns, other.calls)


def test_configuration_reaches_the_program() -> None:
    def program() -> None:
        config = pulumi.Config("mine")
        pulumi.export("plain", config.require("plain"))
        pulumi.export("nested", config.require_object("nested")["list"])
        pulumi.export("own", pulumi.Config().require("own"))
        pulumi.export("stack", f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}")

    config = {"mine:plain": "text", "mine:nested": {"list": [1, 2]}, "own": "x"}
    assert testing.run(program, config=config).outputs == {
        "plain": "text",
        "nested": [1, 2],
        "own": "x",
        "stack": "organization/multinic/dev",
    }


def test_a_function_that_nobody_answers_is_named() -> None:
    with pytest.raises(NotImplementedError, match=r"getNetwork.*subclass of testing\.Mocks"):
        testing.run(lambda: gcp.compute.get_network(name="x"))


def test_looking_for_a_resource_that_is_not_there_says_what_is() -> None:
    declared = testing.run(lambda: gcp.compute.Network("net"))
    with pytest.raises(LookupError, match=r"0 resources are a Route .* there are: gcp:compute/network:Network net"):
        declared.one("Route")
