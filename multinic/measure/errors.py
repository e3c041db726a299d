"""What a measurement tells its user when it cannot go on."""

from __future__ import annotations

from multinic.lab.errors import LabError


class MeasureError(LabError):
    """A measurement that could not run, or came to nothing; the text says why and what to do."""

    exit_code = 1


class WordError(MeasureError):
    """A word of the command line means nothing, or a number cannot be; the text says what would be right."""

    exit_code = 2
