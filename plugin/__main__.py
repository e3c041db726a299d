"""multinic as a Pulumi package: serves its components to programs in other languages.

The engine starts this file and reads the port that it prints. The package's schema is inferred from the annotations
and docstrings of the components and their inputs.
"""

import sys
from importlib.metadata import version

import pulumi
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from multinic import Endpoints, MultinicRouter, NextHop, RoutedNetworks, RouterFleet

# The types of the components' resources begin with this name, too; another one would split state and schema.
NAME = "multinic"
COMPONENTS = (Endpoints, MultinicRouter, NextHop, RoutedNetworks, RouterFleet)


class Package(ComponentProvider):
    """The SDK's host for components, which tells wrong inputs as such."""

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Declares a component.

        Raises:
            InputError: Inputs that cannot be used. The SDK hides it in an error of its own, which the engine shows as
                a crash with a traceback; by itself it is shown as a list of inputs.
        """
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, pulumi.InputPropertiesError):
                raise error.inner from None
            raise


if __name__ == "__main__":
    main(Package(list(COMPONENTS), NAME, None, version(NAME)), sys.argv[1:])
