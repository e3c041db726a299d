"""What Google Cloud means: resources and their rules, and the controllers that act on them."""

from .cloud import Cloud
from .errors import ApiError

__all__ = ["ApiError", "Cloud"]
