"""A Docker Engine of our own: from the distribution's package, in its own namespaces, gone with whoever started it."""
