"""Runs a Pulumi program without the Pulumi CLI: through the SDK's mocks, each resource made by the stand-ins.

The program runs twice: once as a preview, in which every resource is only checked, so that nothing is created while
any input is refused; and once for real. What a real engine adds (state on disk, diffs, updates) is not here.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks as sdk
from pulumi.runtime import settings as sdk_settings
from pulumi.runtime.stack import run_in_stack

from multinic.lab.pulumi.deployment import (
    AT_ONCE,
    DeploymentError,
    InterruptedUpError,
    Made,
    Progress,
    Teardown,
    one_by_one,
)
from multinic.lab.pulumi.monitor import NO_LAB, Log, Monitor
from multinic.lab.pulumi.stand_in import ENDPOINT_VARIABLE, TOKEN_VARIABLE, Provider

ENGINE = "in-process, without the Pulumi CLI"
_DELETE_TIMEOUT_S = 900.0
_GLANCE_S = 0.1


@dataclass
class InProcessDeployment:
    """What a program made in the lab.

    Attributes:
        outputs: The stack's outputs.
        resources: What was made, components too, in the order in which it was made.
        engine: What drove the program, for people.
    """

    outputs: dict[str, Any] = field(default_factory=dict)
    resources: list[Made] = field(default_factory=list)
    engine: str = ENGINE
    _providers: dict[str, Provider] = field(default_factory=dict, repr=False)

    def destroy(self, progress: Progress | None = None) -> None:
        """Delete everything, each resource after all that was made from it.

        Args:
            progress: Gets a line for each resource.

        Raises:
            DeploymentError: If something could not be deleted; the rest is, and what is left can be tried again.
        """
        managed = [made for made in self.resources if made.id]
        teardown = Teardown(self._delete, one_by_one(progress))
        self.resources = teardown.run(managed)
        if teardown.errors:
            raise DeploymentError("could not delete:\n  " + "\n  ".join(teardown.errors), self)
        self.outputs = {}

    def keep(self, made: Made, provider: Provider | None) -> None:
        """Note what was made, and by which provider it can be deleted."""
        self.resources.append(made)
        if provider:
            self._providers[made.urn] = provider

    def _delete(self, made: Made) -> None:
        provider = self._providers.get(made.urn)
        if provider:
            provider.delete(made.type, made.id, made.outputs, _DELETE_TIMEOUT_S)


def up(
    program: Callable[[], Any],
    *,
    project: str,
    stack: str,
    config: Mapping[str, Any],
    endpoint: str | None = None,
    token: str | None = None,
    progress: Progress | None = None,
) -> InProcessDeployment:
    """Bring a program up in the lab.

    Args:
        program: Declares resources and exports outputs. It is called twice.
        project: Name of the Pulumi project, whose own configuration keys need no prefix.
        stack: Name of the stack.
        config: Configuration; keys with a prefix (``gcp:project``) are kept as they are, lists and objects are
            passed as JSON, which is how Pulumi keeps them.
        endpoint: The lab's front door, by default from ``MULTINIC_LAB_ENDPOINT``.
        token: Its token, by default from ``MULTINIC_LAB_TOKEN``.
        progress: Gets a line for each thing that happens.

    Raises:
        DeploymentError: If the program fails, inputs are refused, or the lab refuses a resource.
        InterruptedUpError: On Ctrl-C, after what was under way has come to an end.
    """
    environment = dict(os.environ)
    environment |= {ENDPOINT_VARIABLE: endpoint} if endpoint else {}
    environment |= {TOKEN_VARIABLE: token} if token else {}
    settings = _settings(project, config)
    salt = secrets.token_bytes(16)
    deployment = InProcessDeployment()
    for preview in (True, False):
        monitor = Monitor(
            deployment.keep, deployment.outputs, settings, environment, salt, one_by_one(progress), preview
        )
        try:
            _run(program, project, stack, settings, monitor)
        except KeyboardInterrupt:
            raise InterruptedUpError(deployment) from None
        if monitor.errors:
            raise DeploymentError("\n".join(monitor.errors), deployment if deployment.resources else None)
    return deployment


def check(program: Callable[[], Any], *, project: str, stack: str, config: Mapping[str, Any]) -> None:
    """Judge a program's inputs without a lab: the component's own rules, and what the plugins refuse.

    A program that asks the cloud (for zones, for an image) is judged up to that point.

    Raises:
        DeploymentError: If the program fails or inputs are refused.
    """
    settings = _settings(project, config)
    nowhere = {ENDPOINT_VARIABLE: NO_LAB}
    deployment = InProcessDeployment()
    monitor = Monitor(deployment.keep, deployment.outputs, settings, nowhere, bytes(16), one_by_one(None), preview=True)
    _run(program, project, stack, settings, monitor)
    if monitor.errors:
        raise DeploymentError("\n".join(monitor.errors))


def _settings(project: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Return configuration as Pulumi keeps it: full keys, lists and objects as JSON."""
    return {
        key if ":" in key else f"{project}:{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in config.items()
    }


def _run(program: Callable[[], Any], project: str, stack: str, config: Mapping[str, str], monitor: Monitor) -> None:
    """Run a program in a thread with an event loop, a context and Pulumi settings of its own."""
    outcome: list[BaseException] = []

    def body() -> None:
        sdk_settings.ROOT.set(None)
        make_settings: Any = sdk.MockSettings  # untyped in the SDK
        sdk_settings.configure(
            make_settings(
                monitor=monitor,
                monitor_features=monitor.features,
                engine=Log(monitor),
                project=project,
                stack=stack,
                dry_run=monitor.preview,
                organization="organization",
                callbacks=None,
                # Without these a run would wait for what an interrupted one has left in a loop that is closed.
                outputs=set(),
                lock=threading.Lock(),
            )
        )
        pulumi.runtime.set_all_config(dict(config))
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_default_executor(ThreadPoolExecutor(AT_ONCE))
        try:
            loop.run_until_complete(run_in_stack(program))
        except BaseException as error:  # told to the thread that waits
            outcome.append(error)
        finally:
            _finish(loop)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(body,), name="pulumi-program")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_GLANCE_S)
            monitor.remind()
    except BaseException:
        # Ctrl-C: nothing new is begun, and what is under way is waited for, so that it is known and can be destroyed.
        with monitor.stopping():
            thread.join()
        raise
    for error in outcome:
        # What a failed resource or function makes of the program afterwards is no news.
        if not monitor.errors and not monitor.gave_up:
            monitor.fail(_told(error))


def _told(error: BaseException) -> str:
    text = str(error).strip()
    for_people = (ValueError, TypeError, pulumi.RunError, pulumi.InputPropertyError, pulumi.InputPropertiesError)
    return text if isinstance(error, for_people) and text else f"{type(error).__name__}: {text}"


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    """End what a failed program has left behind in its loop."""
    # Its futures tell the error once more each, when they are freed: later, and in the middle of something else.
    loop.set_exception_handler(lambda _loop, _context: None)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    asyncio.set_event_loop(None)


__all__ = ["DeploymentError", "InProcessDeployment", "up"]
