"""The project stack: what must be there once in a project before any router: APIs, Shared VPC, who may log in by IAP.

Its configuration:

- `shared_vpc_host`: true in a Shared VPC host project;
- `service_projects`: projects that may use the host's networks;
- `iap_members`: who may reach VMs through Identity-Aware Proxy, such as group:network-team@example.com.
"""

import re

import pulumi
import pulumi_gcp as gcp

from multinic import naming
from multinic.problems import Problems
from multinic.reading import Section
from stacks.config import StackConfig, rename

KEYS = ("iap_members", "service_projects", "shared_vpc_host")
APIS = ("compute.googleapis.com", "iam.googleapis.com", "cloudresourcemanager.googleapis.com", "logging.googleapis.com")
IAP_API = "iap.googleapis.com"
IAP_ROLE = "roles/iap.tunnelResourceAccessor"
_MEMBER = re.compile(r"(user|group|serviceAccount|domain):[^\s:]+")


def program() -> None:
    """Declares the stack.

    Raises:
        InputError: The configuration cannot be used; nothing was declared.
    """
    problems, found = Problems(), Problems()
    config = StackConfig(problems, KEYS)
    top = Section({key: config.value(key, None) for key in KEYS}, "", found)
    project = config.project()
    host = top.flag("shared_vpc_host", False)
    service_projects = top.texts("service_projects")
    members = top.texts("iap_members")
    if service_projects and not host:
        found.add("service_projects", "needs shared_vpc_host: true")
    for index, one in enumerate(service_projects):
        if one and not re.fullmatch(naming.PROJECT, one):
            found.add(f"service_projects[{index}]", f"{one!r} is not a project id")
    for index, member in enumerate(members):
        if member and not _MEMBER.fullmatch(member):
            found.add(f"iap_members[{index}]", f"{member!r} is not a member such as group:network-team@example.com")
    for key, values in (("service_projects", service_projects), ("iap_members", members)):
        for index, one in enumerate(values):
            if one and one in values[:index]:
                found.add(f"{key}[{index}]", f"{one} is given twice")
    rename(found, problems, {key: f"multinic:{key}" for key in KEYS})
    problems.raise_if_any()

    enabled = [*APIS, *([IAP_API] if members else [])]
    apis = [
        # Another program in the project may need an API just as well, so it stays on when this stack goes.
        gcp.projects.Service(naming.slug(api.split(".", 1)[0]), project=project, service=api, disable_on_destroy=False)
        for api in enabled
    ]
    after = pulumi.ResourceOptions(depends_on=apis)
    if host:
        shared = gcp.compute.SharedVPCHostProject("host", project=project, opts=after)
        for one in service_projects:
            gcp.compute.SharedVPCServiceProject(
                naming.child("service", one), host_project=shared.project, service_project=one
            )
    for member in members:
        gcp.projects.IAMMember(
            naming.child("iap", naming.slug(member)), project=project, role=IAP_ROLE, member=member, opts=after
        )
    pulumi.export("apis", enabled)
    pulumi.export("shared_vpc_host", host)
