"""The engine's place in the in-process driver: registers what a program declares, by the stand-ins."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime import mocks as sdk
from pulumi.runtime.proto import provider_pb2, resource_pb2

from multinic.lab.pulumi.deployment import REMIND_EVERY_S, Made, Progress
from multinic.lab.pulumi.lifecycle import NotReadyError
from multinic.lab.pulumi.random_types import Random
from multinic.lab.pulumi.stand_in import ENDPOINT_VARIABLE, Gcp, NotServedError, Provider
from multinic.lab.pulumi.values import has_unknown
from multinic.lab.pulumi.wire import pack, unpack

NO_LAB = "none"
"""Endpoint of a check without a lab: functions are not called, the program ends where it needs their answer."""

_PROVIDERS = "pulumi:providers:"


class Monitor(sdk.MockMonitor):
    """Takes the place of the engine's resource monitor: checks in a preview, creates otherwise."""

    def __init__(
        self,
        keep: Callable[[Made, Provider | None], None],
        stack_outputs: dict[str, Any],
        config: Mapping[str, str],
        environment: Mapping[str, str],
        salt: bytes,
        progress: Progress,
        preview: bool,
    ) -> None:
        super().__init__(_NoMocks())
        self._keep_made = keep
        self._stack_outputs = stack_outputs
        self.progress = progress
        self.preview = preview
        self.errors: list[str] = []
        self.stopped = False
        self.gave_up = False
        self._environment = environment
        self._salt = salt
        self._lock = threading.Lock()
        self._under_way: dict[str, str] = {}
        self._last_line = time.monotonic()
        self._failed: set[str] = set()
        self._random = Random()
        own = {key.partition(":")[2]: value for key, value in config.items() if key.startswith("gcp:")}
        try:
            self._gcp: Provider | None = Gcp.configured(own, environment)
        except NotServedError as error:
            self._gcp = None
            self.errors.append(str(error))
        self._explicit: dict[str, Provider] = {}

    @property
    def features(self) -> set[int]:
        """What the SDK may use of this monitor: as much as of its own mock."""
        ask: Any = self.GetDeploymentInfo  # untyped in the SDK
        return set(ask(None).supportedFeatures)

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """While this lasts nothing new is begun, and waits for operations and groups end."""
        self.stopped = True
        with self._lock:
            rests = [provider.rest for provider in (self._gcp, *self._explicit.values()) if isinstance(provider, Gcp)]
        for rest in rests:
            rest.cancelled.set()
        try:
            yield
        finally:
            # The same clients are needed again, to delete what was made.
            for rest in rests:
                rest.cancelled.clear()

    def remind(self) -> None:
        """Say what is still being made, if nothing has been said for a while."""
        if self._under_way and time.monotonic() - self._last_line > REMIND_EVERY_S:
            self._last_line = time.monotonic()
            self.progress("still creating " + ", ".join(sorted(self._under_way.copy().values())))

    def fail(self, text: str) -> None:
        """Note an error."""
        with self._lock:
            if text not in self.errors:
                self.errors.append(text)

    def _provider(self, token: str, reference: str) -> Provider:
        package = token.partition(":")[0]
        if reference.rpartition("::")[0] in self._explicit:
            return self._explicit[reference.rpartition("::")[0]]
        if package == "random":
            return self._random
        if package == "gcp" and self._gcp:
            return self._gcp
        raise NotServedError(f"the lab serves no provider '{package}', which {token} needs")

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 the name is gRPC's
        """Check or create one resource."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        needs = frozenset(request.dependencies)
        inputs = unpack(request.object)
        if not request.custom:
            if not self.preview:
                self._keep(None, Made(urn, request.type, request.name, "", inputs, {}, needs))
            return resource_pb2.RegisterResourceResponse(urn=urn, object=pack(inputs))
        label = f"{request.type.rsplit(':', 1)[-1]} {request.name}"
        try:
            if self.stopped or needs & self._failed or (not self.preview and has_unknown(inputs)):
                # What it needs is not there, and that has been said already.
                return self._refused(urn)
            if request.type.startswith(_PROVIDERS):
                return self._configured(urn, request.type, inputs)
            provider = self._provider(request.type, request.provider)
            if request.importId:
                raise NotServedError("import needs the Pulumi CLI")
            return self._registered(provider, urn, request, inputs, needs)
        except Exception as error:  # every failure becomes a line for people, and the program goes on without it
            self.fail(f"{label}: {error}")
            return self._refused(urn)

    def _refused(self, urn: str) -> Any:
        with self._lock:
            self._failed.add(urn)
        return resource_pb2.RegisterResourceResponse(urn=urn, result=resource_pb2.Result.FAIL)

    def _configured(self, urn: str, token: str, inputs: dict[str, Any]) -> Any:
        package = token.removeprefix(_PROVIDERS)
        if package not in ("gcp", "random"):
            raise NotServedError(f"the lab serves no provider '{package}'")
        self._explicit[urn] = self._random if package == "random" else Gcp.configured(inputs, self._environment)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=package, object=pack(inputs))

    def _registered(
        self, provider: Provider, urn: str, request: Any, inputs: dict[str, Any], needs: frozenset[str]
    ) -> Any:
        token, name = request.type, request.name
        # The same seed in both runs: a name that the preview has checked is the one that is used.
        seed = hashlib.sha256(self._salt + urn.encode()).digest()
        checked, problems = provider.check(token, name, None, inputs, seed)
        if problems:
            label = f"{token.rsplit(':', 1)[-1]} {name}"
            for problem in problems:
                self.fail(f"{label}: {problem.reason} (input '{problem.path}')")
            return self._refused(urn)
        if self.preview:
            outputs = provider.preview(token, checked, None)
            return resource_pb2.RegisterResourceResponse(urn=urn, object=pack(outputs))
        label = f"{token.rsplit(':', 1)[-1]} {name}"
        # Without a provider to delete it, a resource stays: that is what `retain_on_delete` asks for.
        keeper = None if request.retainOnDelete else provider
        self.progress(f"creating {label}")
        self._under_way[urn] = label
        try:
            identity, outputs = provider.create(token, checked, _timeout(request.customTimeouts.create))
        except NotReadyError as error:
            self._keep(keeper, Made(urn, token, name, error.id, checked, error.outputs, needs))
            raise
        finally:
            del self._under_way[urn]
            self._last_line = time.monotonic()
        self._keep(keeper, Made(urn, token, name, identity, checked, outputs, needs))
        self.progress(f"created {label}")
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=pack(outputs))

    def _keep(self, provider: Provider | None, made: Made) -> None:
        with self._lock:
            self._keep_made(made, provider)

    def Invoke(self, request: Any) -> Any:  # noqa: N802 the name is gRPC's
        """Call a function."""
        if self._environment.get(ENDPOINT_VARIABLE) == NO_LAB:
            self.gave_up = True
            raise StopError
        try:
            result = self._provider(request.tok, request.provider).invoke(request.tok, unpack(request.args))
        except Exception as error:
            failure = provider_pb2.CheckFailure(property="", reason=str(error))
            self.fail(f"{request.tok.rsplit(':', 1)[-1]}: {error}")
            return resource_pb2.ResourceInvokeResponse(failures=[failure])
        return _invoke_response(result)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 the name is gRPC's
        """Read an existing resource, as ``Resource.get`` does."""
        urn = self.make_urn(request.parent, request.type, request.name)
        try:
            inputs = unpack(request.properties)
            found = self._provider(request.type, request.provider).read(request.type, request.id, inputs, inputs)
            if found is None:
                raise NotServedError(f"there is no {request.id}")
        except Exception as error:
            self.fail(f"{request.type.rsplit(':', 1)[-1]} {request.name}: {error}")
            raise StopError from error
        return resource_pb2.ReadResourceResponse(urn=urn, properties=pack(found[1]))

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 the name is gRPC's
        """Keep the stack's outputs."""
        if "::pulumi:pulumi:Stack::" in request.urn:
            outputs = unpack(request.outputs)
            self._stack_outputs.update({key: value for key, value in outputs.items() if not has_unknown(value)})
        return empty_pb2.Empty()


class StopError(Exception):
    """Ends a program whose error has been noted already."""


class _NoMocks(sdk.Mocks):
    """Fills a place in the SDK's signature; the monitor answers everything itself."""

    def call(self, args: Any) -> Any:
        """Never called."""
        raise NotServedError(args.token)

    def new_resource(self, args: Any) -> Any:
        """Never called."""
        raise NotServedError(args.typ)


class Log:
    """Takes the place of the engine's log."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def Log(self, request: Any) -> None:  # noqa: N802 the name is gRPC's
        """Pass on what a program says; a preview and the run that follows say the same, so once is enough."""
        if not self._monitor.preview and request.severity > 1:
            self._monitor.progress(request.message)


def _invoke_response(result: dict[str, Any]) -> Any:
    # The field is called `return`, which Python takes only like this.
    fields: Any = {"return": pack(result)}
    return resource_pb2.ResourceInvokeResponse(**fields)


def _timeout(text: str) -> float:
    """Return the seconds of a Go duration such as ``20m0s``; 0 where none is given."""
    seconds, number = 0.0, ""
    for character in text:
        if character in "0123456789.":
            number += character
        elif number:
            seconds += float(number) * {"h": 3600, "m": 60, "s": 1}.get(character, 0)
            number = ""
    return seconds
