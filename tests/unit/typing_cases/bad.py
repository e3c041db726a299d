"""Uses that type checkers must refuse, each on a line that says so. Never run: `test_typing` hands it to them."""

import pulumi

from multinic import MultinicRouter, MultinicRouterArgs, NetworkArgs, ReplicasArgs, Router  # refused: no such name


def networks(some: pulumi.Output[list[str]], number: pulumi.Output[int]) -> None:
    missing: NetworkArgs = {"network": "n", "cidrs": []}  # refused: subnetwork is missing
    misspelt: NetworkArgs = {"network": "n", "subnetwork": "s", "cidr": [], "cidrs": []}  # refused: cidr
    shape: NetworkArgs = {"network": "n", "subnetwork": "s", "cidrs": some}  # refused: an Output where plain is needed
    text: NetworkArgs = {"network": "n", "subnetwork": "s", "cidrs": ["c"], "mtu": "1460"}  # refused: text for a number
    word: NetworkArgs = {"network": "n", "subnetwork": "s", "cidrs": [], "nic_type": "gvnic"}  # refused: not an enum
    link: NetworkArgs = {"network": number, "subnetwork": "s", "cidrs": []}  # refused: an Output of something else
    print(missing, misspelt, shape, text, word, link)


def router(given: MultinicRouterArgs, replicas: ReplicasArgs, count: pulumi.Output[int]) -> None:
    MultinicRouter("router")  # refused: inputs are needed
    MultinicRouter("router", given, "options")  # refused: text for options
    replicas["max"] = count  # refused: sizes decide the shape
    replicas["least"] = 1  # refused: no such input
    made = MultinicRouter("router", given)
    print(made.adresses)  # refused: misspelt output
    first: str = made.addresses  # refused: an Output is not its value
    print(first, Router)
