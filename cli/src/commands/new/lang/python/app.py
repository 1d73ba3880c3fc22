"""The tool: each function with `@tool` is one. Its type hints are the schema, and its docstring the description.

Import modules here, at the top: a module that is imported only while a function runs is missing.
"""

from typing import Annotated

from toolcrib import Invalid, tool


@tool
def SNAKE(name: Annotated[str, "Whom to greet"]) -> str:
    """Greet someone by name."""
    if not name:
        raise Invalid("the name is empty")
    return f"hello, {name}"
