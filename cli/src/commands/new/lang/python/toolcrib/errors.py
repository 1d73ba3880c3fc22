"""Errors of tools. The model reads the message, and a caller can act on the kind."""

from typing import Any


class Failed(Exception):
    """A failure. `details` are members of a JSON object for the model."""

    kind = "failed"

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class Invalid(Failed):
    """The call is invalid; the caller can correct it."""

    kind = "invalid"


class NotFound(Failed):
    """The requested object does not exist."""

    kind = "not-found"


class Conflict(Failed):
    """The current state conflicts with the call."""

    kind = "conflict"


class Unavailable(Failed):
    """An external service does not respond; a later call may succeed."""

    kind = "unavailable"


KINDS = {kind.kind: kind for kind in (Failed, Invalid, NotFound, Conflict, Unavailable)}
"""Errors by their kind."""
