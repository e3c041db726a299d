"""Where Google's APIs answer, and as whom: Google Cloud, or a lab by the variables of ``multinic lab env``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multinic.operate.errors import OperateError

LAB_PROJECT = "lab"
_ROOTS = {
    "crm": "https://cloudresourcemanager.googleapis.com",
    "logging": "https://logging.googleapis.com",
    "serviceusage": "https://serviceusage.googleapis.com",
}
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
TIMEOUT_SECONDS = 30.0
"""For each request; Compute Engine answers a list within a few seconds."""


@dataclass(frozen=True)
class Door:
    """Where requests go.

    Attributes:
        endpoint: The lab's front door; empty for Google Cloud.
        token: The lab's token.
        folder: The lab's folder, by which programs run in its guests; None for Google Cloud.
    """

    endpoint: str = ""
    token: str = ""
    folder: Path | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Door:
        """The lab that the environment names, else Google Cloud."""
        endpoint = environment.get("MULTINIC_LAB_ENDPOINT", "")
        folder = environment.get("MULTINIC_LAB_FOLDER", "")
        return cls(endpoint, environment.get("MULTINIC_LAB_TOKEN", ""), Path(folder) if folder else None)

    @property
    def lab(self) -> bool:
        """Whether this is a lab."""
        return bool(self.endpoint)

    @property
    def pause(self) -> float:
        """Seconds between two readings of what is waited for; Google Cloud counts requests a minute."""
        return 0.2 if self.lab else 1.0

    @property
    def title(self) -> str:
        """For people."""
        return f"the lab at {self.endpoint}" if self.lab else "Google Cloud"

    @property
    def refused(self) -> str:
        """What to say when the credentials are not accepted."""
        cure = "its token is another one" if self.lab else "run `gcloud auth application-default login`"
        return f"{self.title} does not accept the credentials: {cure}"

    @property
    def no_json(self) -> str:
        """What to say where the answer is none of Google's."""
        return f"what answers for {self.title} sends no JSON: is there a proxy in between?"

    def credentials(self) -> Any:
        """The lab's token, or application default credentials.

        Raises:
            OperateError: There are none.
        """
        if self.lab:
            from google.oauth2.credentials import Credentials

            return Credentials(self.token)
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError

        try:
            return google.auth.default(scopes=[_SCOPE])[0]
        except DefaultCredentialsError:
            raise OperateError(
                "there are no credentials: run `gcloud auth application-default login`, "
                'or for a lab eval "$(multinic lab env)"'
            ) from None

    def request(self, api: str, verb: str, path: str, body: Any = None) -> Any:
        """Sends one request to an API other than Compute Engine and returns its JSON.

        Args:
            api: ``crm``, ``logging`` or ``serviceusage``.
            verb: HTTP method.
            path: Below the API's root, such as ``v2/entries:list``.
            body: JSON, or None.

        Raises:
            OperateError: It was refused or did not answer.
        """
        from google.auth.exceptions import GoogleAuthError, RefreshError
        from google.auth.transport.requests import AuthorizedSession
        from requests.exceptions import RequestException

        root = f"{self.endpoint}/{api}" if self.lab else _ROOTS[api]
        try:
            session: Any = AuthorizedSession(self.credentials())
            with session:
                answer = session.request(verb, f"{root}/{path}", json=body, timeout=TIMEOUT_SECONDS)
        except RefreshError:
            raise OperateError(self.refused) from None
        except (GoogleAuthError, RequestException) as error:
            raise OperateError(f"{self.title}: {api} does not answer ({reason(error)})") from None
        try:
            content = answer.json()
        except ValueError:
            if answer.status_code < 400 and answer.content:
                raise OperateError(f"{verb} {root}/{path}: {self.no_json}") from None
            content = {}
        if answer.status_code >= 400:
            said = content.get("error", {}).get("message") if isinstance(content, dict) else None
            raise OperateError(disabled(said or "") or f"{verb} {root}/{path}: {said or f'HTTP {answer.status_code}'}")
        return content


def disabled(said: str) -> str:
    """What to do where Google's words say that an API is not enabled; empty where they say something else."""
    if "has not been used in project" not in said and "it is disabled" not in said:
        return ""
    found = re.search(r"apis/api/([a-z]+\.googleapis\.com)/overview\?project=([\w-]+)", said)
    api, project = found.groups() if found else ("NAME.googleapis.com", "PROJECT")
    return f"an API is not enabled: gcloud services enable {api} --project {project} (then wait a minute)"


def reason(error: Exception) -> str:
    """The innermost reason: libraries wrap a refused connection in several layers."""
    text = str(error.args[0]) if error.args else str(error)
    return text.rpartition(": ")[2].strip("()'\" ")[:200] or type(error).__name__
