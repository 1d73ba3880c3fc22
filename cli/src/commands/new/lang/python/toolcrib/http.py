"""Requests over the granted network. The host inserts secrets, follows no redirect, and limits what a call sends and receives."""

import json as json_format
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from .errors import Conflict, Failed, Invalid, NotFound, Unavailable
from .exchange import NoResponse, Request, exchange
from .host import as_json

KINDS: dict[int, type[Failed]] = {400: Invalid, 404: NotFound, 408: Unavailable, 409: Conflict, 410: NotFound, 412: Conflict}
"""Kinds of failures for statuses below 500."""
KINDS |= {422: Invalid, 425: Unavailable, 429: Unavailable}


class Response:
    """Response with its whole body. Names of headers are in lower case."""

    def __init__(self, url: str, status: int, headers: dict[str, str], body: bytes) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def ok(self) -> bool:
        """`True` for a status of success."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Body as text. Bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Parses the body as JSON."""
        try:
            return json_format.loads(self.body)
        except ValueError as error:
            raise Failed(f"{self.url} did not answer with JSON: {error}") from None

    def raise_for_status(self) -> Self:
        """Fails with the kind that fits the status, such as `NotFound` for 404, unless it is a status of success."""
        if self.ok:
            return self
        kind = KINDS.get(self.status, Unavailable if self.status >= 500 else Failed)
        raise kind(f"{self.url} answered with status {self.status}", status=self.status)


def fetch(
    url: str,
    *,
    method: str = "GET",
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | str | None = None,
    json: Any = None,
    timeout: float | None = None,
) -> Response:
    """Sends a request and reads its whole response, whatever its status.

    `params` are added to the query, and `json` is sent as the body. `timeout` limits, in seconds, the time to connect, to the
    first byte, and between two bytes. A request without a response fails as `Unavailable`, or as `Failed` if it is refused.
    """
    request, shown = _addressed(url, params)
    request.method, request.timeout = method.upper(), timeout
    request.headers = {name.lower(): value for name, value in (headers or {}).items()}
    if json is not None:
        body = as_json(json)
        request.headers.setdefault("content-type", "application/json")
    request.body = body.encode() if isinstance(body, str) else body or b""
    try:
        return Response(shown, *exchange(request))
    except NoResponse as error:
        kind = Failed if error.is_refusal else Unavailable
        raise kind(f"{shown}: {error}") from None


def _addressed(url: str, params: Mapping[str, Any] | None) -> tuple[Request, str]:
    """Returns a request for an address, and the address without its query, for messages."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.netloc.isascii()
    except ValueError:
        usable = False
    if not usable:
        raise Invalid(f"`{url}` is not an address such as `https://example.com/path`")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = "&".join(filter(None, [quote(parts.query, safe="/%:@!$&'()*+,;=~?"), urlencode(params or {}, doseq=True)]))
    request = Request(parts.scheme == "https", parts.netloc, f"{path}?{query}" if query else path)
    return request, f"{parts.scheme}://{parts.netloc}{path}"
