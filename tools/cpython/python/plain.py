"""Requests of the build with the standard library, which has a function for requests of HTTP."""

import _bashkit
import _bashkit_boot

# Modules that programs often import, and that take long to load.
LOADED = ("statistics", "zoneinfo", "secrets", "textwrap", "heapq", "cmath", "array", "queue", "email.message")


def request(name, pairs):
    return _bashkit.http(name, "", pairs, None, None)[1]


def begin(main):
    """The published build calls `main` for each task."""
    _bashkit_boot.main = main
