"""The lab's front door: Google's REST APIs on loopback."""

from .app import create_app

__all__ = ["create_app"]
