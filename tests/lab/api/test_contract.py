"""Google's own client libraries, unchanged, call every method that the lab serves, on a real socket."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import google_auth_httplib2
import httplib2
import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import compute_v1
from google.oauth2.credentials import Credentials
from googleapiclient import discovery
from googleapiclient.discovery_cache import get_static_doc
from googleapiclient.errors import HttpError

from multinic.lab.api.app import SERVICES
from multinic.lab.api.documents import document
from multinic.lab.cloud import Cloud
from multinic.lab.substrate import NoMachines
from tests.lab.api import every_call
from tests.lab.api.conftest import check


class Discovered:
    """google-api-python-client, from the discovery document that it ships."""

    def __init__(self, endpoint: str, token: str, path: str, api: str, version: str) -> None:
        http = google_auth_httplib2.AuthorizedHttp(Credentials(token), httplib2.Http())
        self._resources: dict[str, Any] = {}
        options = {"api_endpoint": f"{endpoint}/{path}"}
        self._service = discovery.build_from_document(get_static_doc(api, version), http=http, client_options=options)

    def call(self, method: str, params: dict[str, Any], body: dict[str, Any] | None) -> Any:
        resource, _, name = method.rpartition(".")
        target = self._resource(resource)
        given = {key.replace(".", "_"): value for key, value in params.items()}
        if body is not None:
            given["body"] = body
        try:
            answer = getattr(target, name)(**given).execute()
        except HttpError as error:
            raise Refused(error.status_code) from error
        # What has no answer in the document comes as it was sent.
        return json.loads(answer) if isinstance(answer, bytes) else answer

    def _resource(self, path: str) -> Any:
        # The library writes all methods of a resource anew for each look at it, so look once.
        if path not in self._resources:
            parent, _, name = path.rpartition(".")
            self._resources[path] = getattr(self._resource(parent) if parent else self._service, name)()
        return self._resources[path]

    def close(self) -> None:
        self._service.close()


class Refused(Exception):  # noqa: N818 - what the lab does, not what went wrong
    pass


class CloudClient:
    """google-cloud-compute: parameters and body become its messages, its answer becomes JSON again."""

    def __init__(self, endpoint: str, token: str) -> None:
        self._options = {"client_options": {"api_endpoint": endpoint}, "credentials": Credentials(token)}
        self._clients: dict[str, Any] = {}

    def call(self, method: str, params: dict[str, Any], body: dict[str, Any] | None) -> Any:
        resource, _, name = method.partition(".")
        if resource not in self._clients:
            kind = getattr(compute_v1, f"{resource[0].upper()}{resource[1:]}Client")
            self._clients[resource] = kind(**self._options)
        client = self._clients[resource]
        word = snake(name)
        function = getattr(client, f"{word}_unary", None) or getattr(client, word)
        request_type = typing.get_args(typing.get_args(inspect.signature(function).parameters["request"].annotation)[0])
        (message,) = [kind for kind in (request_type or ()) if kind is not dict] or [self._message(function)]
        request = message(**{snake(key): value for key, value in params.items()})
        if body is not None:
            (slot,) = [key for key, part in message.meta.fields.items() if part.message is not None]
            part = message.meta.fields[slot].message
            setattr(request, slot, part.from_json(json.dumps(body)))
        try:
            answer = function(request=request, timeout=every_call_seconds)
        except GoogleAPICallError as error:
            raise Refused(error.code) from error
        answer = getattr(answer, "_response", answer)
        return json.loads(
            type(answer).to_json(answer, use_integers_for_enums=False, always_print_fields_with_no_presence=False)
        )

    @staticmethod
    def _message(function: Callable[..., Any]) -> Any:
        annotation = inspect.signature(function).parameters["request"].annotation
        return next(kind for kind in typing.get_args(annotation) if hasattr(kind, "meta"))

    def close(self) -> None:
        for client in self._clients.values():
            client.transport.close()


every_call_seconds = 120


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def go_through(
    client: Discovered | CloudClient, calls: Iterable[every_call.OneCall], document_name: str | None = None
) -> set[str]:
    """Sends all calls and returns their methods; each must succeed, or be refused as it says."""
    answers: every_call.Answers = {}
    for one in calls:
        params, body = every_call.filled(one, answers)
        if one.refused is not None:
            with pytest.raises(Refused) as refusal:
                client.call(one.method, params, body)
            assert refusal.value.args == (one.refused,), one
            continue
        answer = client.call(one.method, params, body)
        assert "error" not in answer, (one, answer)
        if document_name and answer:
            check(document(document_name).methods[one.method].response, answer, one.method)
        answers[one.method] = answer
    return {one.method for one in calls}


# The stand-ins, and so most other tests, go by beta.
@pytest.mark.parametrize("version", ["v1", pytest.param("beta", marks=pytest.mark.slow)])
def test_google_api_python_client_calls_every_method_of_compute_engine(
    endpoint: str, token: str, tmp_path: Path, version: str
) -> None:
    client = Discovered(endpoint, token, f"compute/{version}/", "compute", version)
    try:
        called = go_through(client, every_call.compute(), f"compute.{version}")
    finally:
        client.close()
    assert called == Cloud(tmp_path / "another", NoMachines()).serves()


def test_google_cloud_compute_calls_every_method(endpoint: str, token: str, tmp_path: Path) -> None:
    client = CloudClient(endpoint, token)
    try:
        called = go_through(client, every_call.compute())
    finally:
        client.close()
    assert called == Cloud(tmp_path / "another", NoMachines()).serves()


def test_google_api_python_client_calls_every_method_of_the_other_apis(endpoint: str, token: str) -> None:
    calls = every_call.newer()
    assert calls.keys() == SERVICES.keys()
    for name, service in SERVICES.items():
        api, version = service.document.split(".")
        client = Discovered(endpoint, token, f"{name}/", api, version)
        try:
            assert go_through(client, calls[name]) == set(service.methods), name
        finally:
            client.close()
