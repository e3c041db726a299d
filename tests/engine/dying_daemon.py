"""The lab's daemon without guests, which is killed by the third look at a group: by then the engine waits for it."""

from __future__ import annotations

import itertools
import os
import signal

from multinic.lab import daemon
from multinic.lab.cloud.call import Answer, Call
from multinic.lab.cloud.instance_group_managers import InstanceGroupManagers

LOOKS = itertools.count(1)


def get(self: InstanceGroupManagers, call: Call) -> Answer:
    if next(LOOKS) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return super(InstanceGroupManagers, self).get(call)


if __name__ == "__main__":
    InstanceGroupManagers.get = get  # type: ignore[method-assign, assignment]
    daemon.main()
