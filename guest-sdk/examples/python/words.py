"""Typed tools in Python: a class named after the interface, with a method for each function.

A method returns the success value of a `result`, and raises its `err` as `Err`. The names of `wit_world` are generated from
the WIT when the component is built. A module that is imported only while a function runs is missing, so import at the top
(`Counter.most_common`, for example, imports `heapq` when it is called).
"""

import zlib
from collections import Counter

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import text

MAX_CHARACTERS = 100_000


def split(data: str) -> list[bytes]:
    """Split a text into words; `bytes` knows only ASCII white space."""
    return data.encode().split()


class Text(exports.Text):
    def count(self, text_: str, options: text.CountOptions) -> text.Counts:
        if len(text_) > MAX_CHARACTERS:
            raise Err(text.Problem_TooLong(len(text_)))
        words = [word for word in split(text_) if len(word.decode()) >= (options.shortest or 0)]
        if not words:
            raise Err(text.Problem_NoWords())
        if options.letters == text.Letters.LOWERED:
            words = [word.lower() for word in words]
        return text.Counts(words=len(words), distinct=len(set(words)))

    def most_frequent(self, text_: str, limit: int) -> list[text.Frequency]:
        words = Counter(word.lower() for word in split(text_))
        most = sorted(words.items(), key=lambda item: -item[1])[:limit]
        return [text.Frequency(word.decode(), times) for word, times in most]

    def checksum(self, data: bytes) -> int:
        return zlib.crc32(data)

    def read(self, path: str) -> str:
        try:
            with open(path, encoding="utf-8", newline="") as file:
                return file.read()
        except OSError as error:
            raise Err(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise Err(f"{path}: {error}") from error
