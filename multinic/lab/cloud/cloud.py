"""The lab's cloud: all resources, their controllers, and the substrate below."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..substrate import Substrate, SubstrateError
from . import catalog, fingerprints, metadata
from .addresses import Addresses
from .autoscaler_runs import AutoscalerRuns
from .autoscalers import Autoscalers
from .backend_services import BackendServices
from .call import Answer, Call, Handler
from .clock import Clock, timestamp
from .disks import Disks
from .errors import ApiError, not_found
from .events import Events
from .fabric import Fabric
from .firewalls import Firewalls
from .forwarding_rules import ForwardingRules
from .groups import Groups
from .guest_attributes import GuestAttributes
from .health import Health
from .health_checks import HealthChecks
from .images import Images
from .instance_group_managers import InstanceGroupManagers
from .instance_groups import InstanceGroups
from .instance_templates import InstanceTemplates
from .instances import Instances
from .links import link, region_of, split
from .log_entries import LogEntries
from .machine_types import MachineTypes
from .machines import Machines
from .maintenance import Maintenance
from .metrics import Metrics
from .networks import Networks
from .operations import Operations
from .outages import Outages
from .project_policy import ProjectPolicy
from .projects import Projects
from .resource import Resource
from .resource_policies import ResourcePolicies
from .routers import Routers
from .routes import Routes
from .service_accounts import ServiceAccounts
from .shared_vpc import SharedVpc
from .store import Store
from .subnetworks import Subnetworks
from .zones import Regions, Zones


class Cloud:
    """Google Cloud, as far as the lab has it. Everything runs in one event loop.

    Args:
        folder: Where objects are kept; a lab that was killed comes back with them.
        substrate: Runs machines and packets.
        project: Project id.
        boot_delay: Seconds added to each boot of a guest; guests boot much faster here than VMs of a cloud.
        strict: Refuse unknown fields of request bodies, which Google ignores. For our own tests.
        speed: Lab seconds in a real second, for the controllers' own waiting (not for guests).
        egress_scale: Factor on what VMs may send, for machines that cannot forward what several VMs of a cloud do.
    """

    def __init__(
        self,
        folder: Path,
        substrate: Substrate,
        project: str = "lab",
        boot_delay: float = 0.0,
        strict: bool = False,
        speed: float = 1.0,
        egress_scale: float = 1.0,
    ) -> None:
        self.folder, self.substrate, self.project = folder, substrate, project
        self.boot_delay, self.strict, self.egress_scale = boot_delay, strict, egress_scale
        self.began = timestamp()
        self.clock = Clock(speed)
        self.events = Events()
        self.store = Store(folder / "objects")
        self.operations = Operations(self.store, project)
        self.fabric = Fabric(self)
        self.health = Health(self)
        self.groups = Groups(self)
        self.machines = Machines(self)
        self.maintenance = Maintenance(self)
        self.outages = Outages(self)
        self.projects = Projects(self)
        self.shared_vpc = SharedVpc(self)
        self.zones = Zones(self)
        self.regions = Regions(self)
        self.images = Images(self)
        self.machine_types = MachineTypes(self)
        self.networks = Networks(self)
        self.subnetworks = Subnetworks(self)
        self.firewalls = Firewalls(self)
        self.routes = Routes(self)
        self.addresses = Addresses(self)
        self.health_checks = HealthChecks(self)
        self.instance_templates = InstanceTemplates(self)
        self.instance_group_managers = InstanceGroupManagers(self)
        self.instance_groups = InstanceGroups(self)
        self.autoscalers = Autoscalers(self)
        self.backend_services = BackendServices(self)
        self.forwarding_rules = ForwardingRules(self)
        self.instances = Instances(self)
        self.guest_attributes = GuestAttributes(self)
        self.disks = Disks(self)
        self.routers = Routers(self)
        self.resource_policies = ResourcePolicies(self)
        self.service_accounts = ServiceAccounts(self)
        self.project_policy = ProjectPolicy(self)
        self.log_entries = LogEntries(project)
        self.metrics = Metrics(self)
        self._background: set[asyncio.Task[Any]] = set()
        self._methods = self._collect()
        self.store.watch(self._on_change)

    # Life

    async def start(self) -> None:
        """Begins to act. After a kill this is like a region after a power cut: all machines that ran start again."""
        self.substrate.listen(self.machines.on_event)
        self.substrate.serve_metadata(self.metadata)
        self.substrate.serve_guest_attributes(self.guest_attributes.change)
        self.fabric.start()
        self.service_accounts.make_default()
        self.substrate.keep_only([int(value["id"]) for _, value in self.store.everywhere("instances")])
        for key, value in list(self.store.everywhere("instances")):
            if value["status"] in ("PROVISIONING", "STAGING", "RUNNING"):
                self.background(self._restart(key))
            elif value["status"] == "STOPPING":
                self.instances.set_status(key, "TERMINATED")
        for key, value in list(self.store.everywhere("instanceGroupManagers")):
            self.groups.open(key)
            if value.get("_deleting"):
                self.background(self.groups.dismantle(key))
        self.background(AutoscalerRuns(self).run())
        self.background(self.metrics.run())

    async def _restart(self, key: str) -> None:
        try:
            await self.machines.start(key)
        except ApiError:
            # The instance is TERMINATED and the event log says why; a group repairs its own.
            self.groups.instance_changed(key)

    async def close(self) -> None:
        """Stops acting and ends all machines; the objects stay on disk."""
        await self.operations.close()
        await self.groups.close()
        await self.health.close()
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.fabric.close()
        await self.substrate.close()

    def background(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs something beside everything else, until it ends or the cloud closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background_done)
        return task

    def _background_done(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, (ApiError, SubstrateError)):
            self.events.add("lab", "background", "failed", reason=repr(error))

    async def uninterrupted(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Awaits work that goes on to its end even when the caller is cancelled."""
        return await asyncio.shield(self.background(work))

    # Requests

    async def call(self, call: Call) -> Answer:
        """Carries out a request that the API layer has matched and checked.

        Raises:
            ApiError: What the client is told.
        """
        handler = self._methods.get(call.method)
        if handler is None:
            raise ApiError(
                501,
                "notImplemented",
                f"The lab does not serve compute.{call.method}. See docs/lab.md for what it serves.",
            )
        project = call.params.get("project", self.project)
        public = project in catalog.IMAGE_PROJECTS and call.method.startswith("images.")
        attached = call.method == "projects.getXpnHost" and project in self.shared_vpc.attached()
        if project not in (self.project, str(self.projects.number)) and not public and not attached:
            raise not_found(f"projects/{project}")
        answer = handler(call)
        return await answer if inspect.isawaitable(answer) else answer

    def serves(self) -> frozenset[str]:
        """Names of all methods served, as in the discovery document without ``compute.``."""
        return frozenset(self._methods)

    def _collect(self) -> dict[str, Handler]:
        methods: dict[str, Handler] = {}
        for resource in self.resources():
            methods |= resource.methods()
        for name in ("globalOperations", "regionOperations", "zoneOperations"):
            methods[f"{name}.get"] = lambda call: self.operations.get(call.scope, call.params["operation"])
            methods[f"{name}.wait"] = lambda call: self.operations.wait(call.scope, call.params["operation"])
            methods[f"{name}.list"] = self._list_operations
            methods[f"{name}.delete"] = lambda call: self.operations.delete(call.scope, call.params["operation"])
        methods["globalOperations.aggregatedList"] = self._aggregated_operations
        return methods

    def _list_operations(self, call: Call) -> Answer:
        parent = f"projects/{self.project}/{call.scope}/operations"
        return {
            "kind": "compute#operationList",
            "id": parent,
            "items": self.operations.listed(call.scope),
            "selfLink": link(parent),
        }

    def _aggregated_operations(self, call: Call) -> Answer:
        scopes = self.places(("global", "regions", "zones"))
        return {
            "kind": "compute#operationAggregatedList",
            "id": f"projects/{self.project}/aggregated/operations",
            "items": {scope: {"operations": self.operations.listed(scope)} for scope in scopes},
            "selfLink": link(f"projects/{self.project}/aggregated/operations"),
        }

    def resources(self) -> Iterator[Resource]:
        """All kinds of Compute Engine resources."""
        for value in vars(self).values():
            if isinstance(value, Resource):
                yield value

    # Helpers of the resources

    def noun_of(self, key: str) -> str:
        """How Google's messages call the object of a key."""
        collection = split(key).collection
        return next((r.noun for r in self.resources() if r.collection == collection), collection)

    def require_place(self, scope: str) -> None:
        """Refuses a zone or region that is not there."""
        kind, _, place = scope.partition("/")
        known = {"zones": catalog.ZONES, "regions": catalog.REGIONS}.get(kind, ("",))
        if place not in known:
            raise ApiError(
                400,
                "invalid",
                f"Invalid value for field '{kind[:-1]}': '{place}'. Unknown {kind[:-1]}.",
            )

    def places(self, kinds: Iterable[str]) -> Iterator[str]:
        """All scopes of some kinds."""
        for kind in sorted(kinds):
            if kind == "global":
                yield "global"
            else:
                yield from (f"{kind}/{name}" for name in (catalog.ZONES if kind == "zones" else catalog.REGIONS))

    def region_of_scope(self, scope: str) -> str:
        """Name of the region of a zonal or regional scope."""
        kind, _, place = scope.partition("/")
        return region_of(place) if kind == "zones" else place

    def by_number(self, key: str) -> str:
        """The key of a template that is named by its number, in either form; other keys as they are."""
        plain, _, unique = key.partition("?uniqueId=")
        parent, _, name = plain.rpartition("/")
        number = unique or (name if name.isdigit() else "")
        if not number or not parent.endswith("/instanceTemplates"):
            return plain
        found = (candidate for candidate, value in self.store.children(parent) if value["id"] == number)
        return next(found, plain)

    @staticmethod
    def fingerprint(content: Any) -> str:
        """See `fingerprints.fingerprint`."""
        return fingerprints.fingerprint(content)

    def metadata(self, key: str) -> dict[str, Any] | None:
        """The whole metadata tree of an instance."""
        return metadata.tree(
            self.store,
            key,
            project=self.project,
            number=self.projects.number,
            forwarded=self.fabric.forwarded(key),
            preempted=self.machines.preempted(key),
            maintenance=self.maintenance.notice(key),
        )

    _PACKETS = (
        "networks",
        "subnetworks",
        "firewalls",
        "routes",
        "healthChecks",
        "backendServices",
        "forwardingRules",
        "instanceGroupManagers",
        "instances",
    )

    def _on_change(self, key: str) -> None:
        try:
            collection = split(key).collection
        except ValueError:
            return
        if collection in self._PACKETS:
            self.fabric.changed()
