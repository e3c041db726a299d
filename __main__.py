"""The Pulumi project's program: runs the one in `stacks` that the stack's configuration names."""

import stacks

stacks.run()
