"""Google Cloud for routers on one Linux machine: for the demo, for development and for tests."""
