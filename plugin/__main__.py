"""multinic as a Pulumi package: serves its components to programs in other languages.

The engine starts this file and reads the port that it prints. The package's schema is inferred from the annotations
and docstrings of the components and their inputs.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pulumi
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.analyzer import ComponentDefinition, PropertyDefinition
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from multinic import Endpoints, MultinicRouter, NextHop, RoutedNetworks, RouterFleet

# The types of the components' resources begin with this name, too; another one would split state and schema.
NAME = "multinic"
COMPONENTS = (Endpoints, MultinicRouter, NextHop, RoutedNetworks, RouterFleet)


class Package(ComponentProvider):
    """The SDK's host for components, which leaves judging inputs to them and tells wrong ones as such."""

    def map_inputs(self, inputs: pulumi.Inputs, component_def: ComponentDefinition) -> pulumi.Inputs:
        """Returns inputs by their Python names.

        The SDK's own drops unknown ones without a word, takes what is no object for an empty one, and ends at the
        first that is missing. Here all that stays as it is, and the component tells of everything at once.
        """
        return {**self._renamed(inputs, component_def.inputs, component_def.inputs_mapping)}

    def _renamed(
        self, values: Mapping[str, Any], properties: Mapping[str, PropertyDefinition], names: Mapping[str, str]
    ) -> dict[str, Any]:
        return {
            names.get(key, key): self._inside(value, properties[key]) if key in properties else value
            for key, value in values.items()
        }

    def _inside(self, value: Any, described: PropertyDefinition) -> Any:
        """Returns a value with the names inside of it changed too."""
        if isinstance(value, list) and described.items:
            return [self._inside(one, described.items) for one in value]
        kind = self.get_type_definition(described) if described.ref else None
        if kind is None or kind.enum or not isinstance(value, dict):
            return value
        return self._renamed(value, kind.properties, kind.properties_mapping)

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
