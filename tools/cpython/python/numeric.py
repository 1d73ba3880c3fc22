"""Requests of the build with packages to compute, which has a function that takes and returns bytes."""

import _host

# Modules that programs often import, and that take long to load.
LOADED = ("statistics", "secrets", "textwrap", "io", "csv", "numpy", "numpy.random", "pandas")


def packed(text):
    data = text.encode()
    return len(data).to_bytes(4, "little") + data


def request(name, pairs):
    """Sends a name, an empty address, pairs of texts and an empty body; the answer has a status, pairs and a body."""
    texts = [packed(text) for pair in pairs for text in pair]
    frame = [packed(name), packed(""), len(pairs).to_bytes(4, "little"), *texts, packed("")]
    answer = memoryview(_host.call(b"".join(frame)))
    place = 4

    def number():
        nonlocal place
        place += 4
        return int.from_bytes(answer[place - 4 : place], "little")

    def text():
        nonlocal place
        length = number()
        place += length
        return str(answer[place - length : place], "utf-8")

    return [(text(), text()) for _ in range(number())]


def begin(main):
    """The guest calls `main` of this module for each task."""
