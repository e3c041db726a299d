"""Public inputs → settings: types, single values, defaults. Rules between values are in `rules`.

Every function reads one section, notes problems, and returns settings that are whole even when something was wrong,
so that the caller can go on and report everything together.
"""

from dataclasses import replace

from multinic import images, machines, naming, parsing_scaling, rules
from multinic.choices import UpdateType
from multinic.problems import Problems
from multinic.reading import Section, shown
from multinic.settings import (
    HEAL_CHECK,
    AccessSettings,
    CheckSettings,
    FleetSettings,
    HealthSettings,
    MachineSettings,
    NetworkSettings,
    NextHopPolicy,
    RouterSettings,
    RoutesSettings,
    UpdatesSettings,
)
from multinic.zones import REGION

_TAG_FORM = "a network tag"


def router(args: object, problems: Problems, path: str = "") -> RouterSettings:
    """Reads the inputs of `MultinicRouter`.

    Args:
        args: A `MultinicRouterArgs`, or the same as plain JSON from a stack's configuration.
        problems: Where problems are noted.
        path: What their paths begin with.
    """
    top = Section(args, path, problems)
    settings = RouterSettings(
        next_hop=next_hop(top.section("next_hop")),
        routes=_routes(top.section("routes")),
        access=_access(top.section("access")),
        fleet=_shape(top),
    )
    top.done()
    if not top.is_broken:
        rules.check(settings, problems, called=top.at)
    return settings


def fleet(args: object, problems: Problems, path: str = "") -> FleetSettings:
    """Reads the inputs of `RouterFleet`."""
    top = Section(args, path, problems)
    settings = replace(
        _shape(top),
        service_account=top.link("service_account"),
        scopes=top.texts("scopes", FleetSettings.scopes),
        draining_sec=top.integer("draining_sec", FleetSettings.draining_sec, 0, 3600, "s"),
    )
    top.done()
    if not top.is_broken:
        # It makes no routes, so whoever makes them judges what may be nested.
        rules.check(RouterSettings(settings, routes=RoutesSettings(allow_nested_cidrs=True)), problems, called=top.at)
    return settings


def _shape(top: Section) -> FleetSettings:
    return FleetSettings(
        region=top.text("region", pattern=REGION, form="a region such as us-central1"),
        networks=tuple(_network(section) for section in top.sections("networks")),
        zones=_zones(top),
        machine=_machine(top.section("machine")),
        project=top.text("project", "", pattern=naming.PROJECT, form="a project id"),
        replicas=parsing_scaling.replicas(top.section("replicas")),
        autoscaler=parsing_scaling.autoscaler(top.section("autoscaler")),
        standby=parsing_scaling.standby(top.section("standby")),
        health=_health(top.section("health")),
        updates=_updates(top.section("updates")),
        labels=top.pairs("labels"),
        generation=top.text("generation", "", pattern="[a-z][a-z0-9]{0,9}", form="a letter and up to nine more"),
    )


def _zones(top: Section) -> tuple[str, ...] | None:
    """Reads the zones; None means that they are looked up."""
    given = top.texts("zones")
    return given if top.has("zones") else None


def _network(section: Section) -> NetworkSettings:
    settings = NetworkSettings(
        network=section.link("network"),
        subnetwork=section.link("subnetwork"),
        cidrs=section.cidrs("cidrs", None),
        subnet_cidrs=section.cidrs("subnet_cidrs"),
        address=section.link("address", required=False),
        nic_type=section.choice("nic_type", NetworkSettings.nic_type),
        queue_count=section.optional_integer("queue_count", 1, 32),
        mtu=section.optional_integer("mtu", 1300, 8896, "bytes"),
        project=section.text("project", "", pattern=naming.PROJECT, form="a project id"),
    )
    section.done()
    return settings


def _machine(section: Section) -> MachineSettings:
    default = MachineSettings()
    kind = section.text("type", default.type)
    parsed = machines.parse(kind)
    if parsed is None:
        section.problems.add(section.at("type"), f"{shown(kind)} is not a machine type such as {default.type}")
    image, family = section.text("image", ""), section.text("image_family", "")
    shielded = section.section("shielded")
    settings = MachineSettings(
        image=image,
        image_family=family,
        type="" if section.problems.touch(section.at("type")) else kind,
        disk_gb=section.integer("disk_gb", images.least_disk_gb(image or family), 10, 65536, "GB"),
        disk_type=section.text(
            "disk_type", parsed.disk if parsed else default.disk_type, pattern=naming.NAME, form="a disk type"
        ),
        disk_kms_key=section.link("disk_kms_key", required=False),
        spot=section.flag("spot", default.spot),
        secure_boot=shielded.flag("secure_boot", default.secure_boot),
        vtpm=shielded.flag("vtpm", default.vtpm),
        integrity_monitoring=shielded.flag("integrity_monitoring", default.integrity_monitoring),
        confidential=section.flag("confidential", default.confidential),
        tier_1=section.flag("tier_1", default.tier_1),
        min_cpu_platform=section.text("min_cpu_platform", ""),
        tags=_names(section, "tags", _TAG_FORM),
        metadata=section.pairs("metadata"),
        startup_script=section.text("startup_script", ""),
        clamp_mss=section.optional_integer("clamp_mss", 536, 8856, "bytes"),
    )
    shielded.done()
    section.done()
    check_image(section, settings.image, settings.image_family)
    return settings


def check_image(section: Section, image: str, family: str = "") -> None:
    """Notes a missing or doubtful image."""
    if image and family:
        section.problems.add(section.at("image_family"), "is given together with image; give one of them")
    if image:
        images.check_exact(image, section.at("image"), section.problems)
    elif family:
        images.check_family(family, section.at("image_family"), section.problems)
    elif not section.is_broken and not section.problems.touch(section.at("image")):
        section.problems.add(
            section.at("image"),
            "is required: give an exact image such as projects/debian-cloud/global/images/debian-12-bookworm-v20260921",
        )


def _check(section: Section, default: CheckSettings) -> CheckSettings:
    return CheckSettings(
        interval_sec=section.integer("interval_sec", default.interval_sec, 1, 300, "s"),
        timeout_sec=section.integer("timeout_sec", default.timeout_sec, 1, 300, "s"),
        healthy_threshold=section.integer("healthy_threshold", default.healthy_threshold, 1, 10),
        unhealthy_threshold=section.integer("unhealthy_threshold", default.unhealthy_threshold, 1, 10),
        port=section.integer("port", default.port, 1, 65535),
    )


def _health(section: Section) -> HealthSettings:
    traffic, heal = section.section("traffic"), section.section("heal")
    settings = HealthSettings(
        traffic=_check(traffic, CheckSettings()),
        heal=_check(heal, HEAL_CHECK),
        initial_delay_sec=heal.integer("initial_delay_sec", HealthSettings.initial_delay_sec, 0, 3600, "s"),
        log=section.flag("log", HealthSettings.log),
        regional=section.flag("regional", HealthSettings.regional),
    )
    traffic.done()
    heal.done()
    section.done()
    return settings


def next_hop(section: Section) -> NextHopPolicy:
    """Reads how the load balancers spread and move connections."""
    default = NextHopPolicy()
    settings = NextHopPolicy(
        session_affinity=section.choice("session_affinity", default.session_affinity),
        tracking_mode=section.choice("tracking_mode", default.tracking_mode),
        persistence=section.choice("persistence", default.persistence),
        idle_timeout_sec=section.optional_integer("idle_timeout_sec", 600, 57600, "s"),
        draining_sec=section.integer("draining_sec", default.draining_sec, 0, 3600, "s"),
        global_access=section.flag("global_access", default.global_access),
        log_sample_rate=section.number("log_sample_rate", default.log_sample_rate, 0, 1),
        failover_zones=section.texts("failover_zones"),
        failover_ratio=section.number("failover_ratio", default.failover_ratio, 0, 1),
        drop_if_unhealthy=section.flag("drop_if_unhealthy", default.drop_if_unhealthy),
        zonal_affinity=section.choice("zonal_affinity", default.zonal_affinity),
        spillover_ratio=section.optional_number("spillover_ratio", 0, 1),
        stateful=section.flag("stateful", default.stateful),
    )
    section.done()
    return settings


def _routes(section: Section) -> RoutesSettings:
    settings = RoutesSettings(
        priority=section.integer("priority", RoutesSettings.priority, 0, 65535),
        tags=_names(section, "tags", _TAG_FORM),
        allow_nested_cidrs=section.flag("allow_nested_cidrs", RoutesSettings.allow_nested_cidrs),
    )
    section.done()
    return settings


def _access(section: Section) -> AccessSettings:
    settings = AccessSettings(
        service_account=section.link("service_account", required=False),
        scopes=section.texts("scopes", AccessSettings.scopes),
        source_cidrs=section.cidrs("source_cidrs"),
        iap_ssh=section.flag("iap_ssh", AccessSettings.iap_ssh),
    )
    section.done()
    return settings


def _updates(section: Section) -> UpdatesSettings:
    default = UpdatesSettings()
    settings = UpdatesSettings(
        type=section.choice("type", default.type),
        minimal_action=section.choice("minimal_action", default.minimal_action),
        max_surge=section.integer("max_surge", default.max_surge, 0, 100),
        max_unavailable=section.integer("max_unavailable", default.max_unavailable, 0, 100),
        min_ready_sec=section.integer("min_ready_sec", default.min_ready_sec, 0, 3600, "s"),
        wait=section.flag("wait", default.wait),
    )
    if settings.type is UpdateType.OPPORTUNISTIC and section.has("wait") and settings.wait:
        section.problems.add(section.at("wait"), "there is nothing to wait for with OPPORTUNISTIC; leave it out")
    section.done()
    return settings


def _names(section: Section, key: str, form: str) -> tuple[str, ...]:
    """Reads a list of resource names."""
    values = section.texts(key)
    for index, value in enumerate(values):
        if value and not naming.VALID.fullmatch(value):
            section.problems.add(f"{section.at(key)}[{index}]", f"{shown(value)} is not {form}: {naming.NAME_FORM}")
    return values
