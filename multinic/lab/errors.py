"""What a user of the lab can mend."""


class LabError(RuntimeError):
    """Something is wrong with the lab, this machine or an input; the text is a sentence and a cure."""
