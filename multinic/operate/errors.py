"""What an operator is told instead of a traceback, and the exit code that goes with it."""

from __future__ import annotations


class OperateError(Exception):
    """It could not be done: an API's answer, no permission, no stack. Its text is one sentence for people."""

    exit_code = 1


class WordError(OperateError):
    """A word of the command line names nothing that is there; the text says what there is."""

    exit_code = 2


class RefusedError(OperateError):
    """It would harm traffic and was not begun; ``--force`` does it nevertheless."""

    exit_code = 3


class StoppedError(OperateError):
    """It was begun and did not get there: health dropped, or not in time. The text says how to go on."""

    exit_code = 4


class FoundError(OperateError):
    """Something was looked at and is not as it should be; what it is has been shown."""

    exit_code = 5
