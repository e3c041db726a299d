"""Pulumi against the lab: stand-ins for two provider plugins, two ways to drive a program, and the CLI.

The stand-ins (`stand_in`, `types/`) speak only Google's REST to the lab's front door. `in_process` runs a program
through Pulumi's mocks without a CLI; `engine` runs the real one. What the real pulumi-gcp plugin sends was recorded,
and the tests hold the stand-ins to it.
"""
