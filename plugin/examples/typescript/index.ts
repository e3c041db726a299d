// A router from TypeScript, through the SDK that is generated from the package's schema.
import * as pulumi from "@pulumi/pulumi";
import * as multinic from "@pulumi/multinic";

const region = "us-central1";

function network(name: string, cidr: string): multinic.types.input.NetworkArgsArgs {
    return {
        network: `projects/net-host/global/networks/${name}`,
        subnetwork: `projects/net-host/regions/${region}/subnetworks/${name}-routers`,
        cidrs: [cidr],
    };
}

const router = new multinic.MultinicRouter("router", {
    region,
    zones: ["a", "b", "c"].map((letter) => `${region}-${letter}`),
    networks: [network("left", "10.10.0.0/16"), network("right", "10.20.0.0/16")],
    machine: { image: "projects/debian-cloud/global/images/debian-12-bookworm-v20260921" },
    replicas: { min: 2, max: 6 },
    nextHop: { sessionAffinity: multinic.SessionAffinity.CLIENT_IP, drainingSec: 60 },
});

export const addresses: pulumi.Output<string[]> = router.addresses;
export const groups: pulumi.Output<{ [zone: string]: string }> = router.groups;
