"""A provider stand-in as the gRPC service that Pulumi's engine talks to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from multinic.lab.pulumi import schema
from multinic.lab.pulumi.lifecycle import NotReadyError
from multinic.lab.pulumi.stand_in import Gcp, Provider
from multinic.lab.pulumi.wire import pack, unpack

_DETAILS = "grpc-status-details-bin"


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine for one package.

    A program may have several provider instances with settings of their own. The engine attaches all of them to the
    same port and no request says which it is for, but each has its own connection: its address tells them apart.
    """

    def __init__(self, package: str, version: str, configure: Callable[[dict[str, Any]], Provider]) -> None:
        self._package = package
        self._version = version
        self._configure = configure
        self._lock = threading.Lock()
        self._providers: dict[str, Provider] = {}
        self._latest: Provider | None = None

    def _provider(self, context: grpc.ServicerContext) -> Provider:
        with self._lock:
            provider = self._providers.get(context.peer()) or self._latest
        return provider or self._configure({})

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 the names are gRPC's
        """Nothing to do: the engine found us."""
        return empty_pb2.Empty()

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Accept nothing beyond plain values, which is what the table knows."""
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Return the version of the plugin that this one stands in for."""
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Return a schema: for gcp what the table has, for random no more than who this is."""
        if self._package == "gcp":
            return provider_pb2.GetSchemaResponse(schema=schema.gcp(self._version))
        return provider_pb2.GetSchemaResponse(schema=f'{{"name":"{self._package}","version":"{self._version}"}}')

    def GetMapping(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Return no mapping: nothing is converted from Terraform here."""
        return provider_pb2.GetMappingResponse()

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Take any configuration; what is used of it is checked when it is used."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """A changed configuration replaces no provider."""
        return provider_pb2.DiffResponse()

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Remember a provider instance's settings."""
        try:
            provider = self._configure(unpack(request.args))
        except Exception as error:
            _abort(context, error)
        with self._lock:
            self._providers[context.peer()] = self._latest = provider
        return provider_pb2.ConfigureResponse(
            acceptSecrets=False, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """End every wait of the instance that asks: its run was interrupted."""
        provider = self._provider(context)
        if isinstance(provider, Gcp):
            provider.rest.cancelled.set()
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Call a function."""
        try:
            result = self._provider(context).invoke(request.tok, unpack(request.args))
        except Exception as error:
            _abort(context, error)
        # The field is called `return`, which Python takes only like this.
        fields: Any = {"return": pack(result)}
        return provider_pb2.InvokeResponse(**fields)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Complete a resource's inputs, or refuse them."""
        old = unpack(request.olds) if request.olds.fields else None
        token, name = _names(request.urn)
        try:
            provider = self._provider(context)
            inputs, problems = provider.check(token, name, old, unpack(request.news), request.randomSeed)
        except Exception as error:
            _abort(context, error)
        failures = [provider_pb2.CheckFailure(property=problem.path, reason=problem.reason) for problem in problems]
        return provider_pb2.CheckResponse(inputs=pack(inputs), failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Say what an update would do."""
        token, _ = _names(request.urn)
        try:
            found = self._provider(context).diff(
                token, unpack(request.old_inputs), unpack(request.olds), unpack(request.news)
            )
        except Exception as error:
            _abort(context, error)
        some = provider_pb2.DiffResponse.DIFF_SOME if found.changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some, diffs=found.changed, replaces=found.replaces, deleteBeforeReplace=found.delete_first
        )

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Make a resource."""
        token, _ = _names(request.urn)
        inputs = unpack(request.properties)
        try:
            provider = self._provider(context)
            if request.preview:
                return provider_pb2.CreateResponse(properties=pack(provider.preview(token, inputs, None)))
            identity, outputs = provider.create(token, inputs, request.timeout)
        except NotReadyError as error:
            _abort_not_ready(context, error, inputs)
        except Exception as error:
            _abort(context, error)
        return provider_pb2.CreateResponse(id=identity, properties=pack(outputs))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Return a resource as it is now; without an id, it is gone."""
        token, _ = _names(request.urn)
        try:
            found = self._provider(context).read(token, request.id, unpack(request.inputs), unpack(request.properties))
        except Exception as error:
            _abort(context, error)
        if found is None:
            return provider_pb2.ReadResponse()
        inputs, outputs = found
        return provider_pb2.ReadResponse(id=request.id, inputs=pack(inputs), properties=pack(outputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Change a resource in place."""
        token, _ = _names(request.urn)
        old, state, new = unpack(request.old_inputs), unpack(request.olds), unpack(request.news)
        try:
            provider = self._provider(context)
            if request.preview:
                return provider_pb2.UpdateResponse(properties=pack(provider.preview(token, new, state)))
            outputs = provider.update(token, request.id, old, state, new, request.timeout)
        except NotReadyError as error:
            _abort_not_ready(context, error, new)
        except Exception as error:
            _abort(context, error)
        return provider_pb2.UpdateResponse(properties=pack(outputs))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Delete a resource."""
        token, _ = _names(request.urn)
        try:
            self._provider(context).delete(token, request.id, unpack(request.properties), request.timeout)
        except Exception as error:
            _abort(context, error)
        return empty_pb2.Empty()


def _names(urn: str) -> tuple[str, str]:
    """Return type token and logical name of ``urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME``."""
    _, _, types, name = urn.split("::", 3)
    return types.rpartition("$")[2], name


def _abort(context: grpc.ServicerContext, error: Exception) -> Any:
    """End a call with an error's own words; what has no words of its own is a mistake of ours, and its type helps."""
    ours = type(error).__module__.startswith("multinic.")
    context.abort(grpc.StatusCode.UNKNOWN, str(error) if ours else f"{type(error).__name__}: {error}")


def _abort_not_ready(context: grpc.ServicerContext, error: NotReadyError, inputs: dict[str, Any]) -> Any:
    """End a call so that the engine keeps the resource in its state although the call failed.

    Source: https://github.com/pulumi/pulumi/blob/master/proto/pulumi/provider.proto (ErrorResourceInitFailed).
    """
    # Late, as a process that has loaded it can no longer load Google's client: both define `google.rpc.Status`.
    from pulumi.runtime.proto import status_pb2

    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.id, properties=pack(error.outputs), reasons=[str(error)], inputs=pack(inputs)
    )
    packed = any_pb2.Any()
    packed.Pack(detail)
    code = grpc.StatusCode.UNKNOWN
    status = status_pb2.Status(code=code.value[0], message=str(error), details=[packed])
    context.set_trailing_metadata(((_DETAILS, status.SerializeToString()),))
    context.abort(code, str(error))
