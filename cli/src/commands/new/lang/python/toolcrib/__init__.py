"""Tools in Python for toolcrib.

    from toolcrib import Invalid, fetch, tool

    @tool
    def greet(name: str) -> str:
        \"\"\"Greet someone by name.\"\"\"
        if not name:
            raise Invalid("the name is empty")
        return f"hello, {name}"

Type hints are the schema of the arguments, and the docstring is the description. `fetch` and the other functions of the host
work while a call runs; in plain Python, for a test, they fail.
"""

from .errors import Conflict, Failed, Invalid, NotFound, Unavailable
from .host import ask, cache_get, cache_set, call, log, progress, secrets, show
from .http import Response, fetch
from .tools import tool

__all__ = [
    "Conflict",
    "Failed",
    "Invalid",
    "NotFound",
    "Response",
    "Unavailable",
    "ask",
    "cache_get",
    "cache_set",
    "call",
    "fetch",
    "log",
    "progress",
    "secrets",
    "show",
    "tool",
]
