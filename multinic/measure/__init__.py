"""Bandwidth, connection pauses, path MTU, sizing and cost: the same code for the cloud, the lab and plain hosts."""
