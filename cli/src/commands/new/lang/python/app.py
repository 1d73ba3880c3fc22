"""The tool: a class named after the interface, with a method for each function.

A method returns the success value of a `result`, and raises its `err` as `Err`. Import modules here, at the top: a module
that is imported only while a function runs is missing.
"""

from componentize_py_types import Err
from wit_world import exports


class Tools(exports.Tools):
    def SNAKE(self, name: str) -> str:
        if not name:
            raise Err("the name is empty")
        return f"hello, {name}"
