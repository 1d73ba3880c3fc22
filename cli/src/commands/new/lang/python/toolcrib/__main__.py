"""Prints the descriptors of the tools in `app.py`, completed from `descriptor.json`, for `toolcrib describe`."""

import json
import sys
import traceback

from .tools import descriptors, last_line, registered


def main() -> int:
    try:
        with open("descriptor.json", encoding="utf-8") as file:
            metadata = json.load(file)
        import app  # noqa: F401

        if not registered:
            raise TypeError("app.py has no tool: decorate a function with `@tool`")
        print(json.dumps(descriptors(metadata)))
        return 0
    except Exception as error:
        traceback.print_exception(error)
        return 1


sys.exit(main())
