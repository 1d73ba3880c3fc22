"""One request through `wasi:http`, and its whole response."""

import re
from dataclasses import dataclass, field
from typing import Any

from .errors import Invalid
from .host import Err, imported

_http, _handler = imported("wit_world.imports.wasi_http_types"), imported("wit_world.imports.outgoing_handler")

MAX_BODY = 8 << 20
"""Maximum size of a response's body, in bytes."""
PIECE = 4096
"""Maximum size of one write to the host, in bytes."""
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
REASONS = {
    "HttpRequestDenied": "denied by the grant",
    "DestinationIpProhibited": "its address is prohibited",
    "DnsTimeout": "there is no such host",
    "DnsError": "there is no such host",
    "DestinationNotFound": "there is no such host",
    "DestinationUnavailable": "the host cannot be reached",
    "DestinationIpUnroutable": "the host cannot be reached",
    "ConnectionRefused": "the connection was refused",
    "ConnectionTerminated": "the connection was closed",
    "HttpResponseIncomplete": "the connection was closed",
    "ConnectionTimeout": "connecting took too long",
    "ConnectionReadTimeout": "the answer took too long",
    "HttpResponseTimeout": "the answer took too long",
    "ConnectionWriteTimeout": "sending took too long",
    "ConnectionLimitReached": "the limit of requests is reached",
    "TlsProtocolError": "the secure connection failed",
    "TlsCertificateError": "the secure connection failed",
    "TlsAlertReceived": "the secure connection failed",
    "HttpRequestMethodInvalid": "the method is refused",
    "HttpRequestUriInvalid": "the address is refused",
    "HttpRequestUriTooLong": "the address is refused",
    "HttpRequestBodySize": "the body is too large",
    "HttpResponseBodySize": "the body of the answer is too large",
}
"""Words for the reasons of the host."""


class NoResponse(Exception):
    """Request without a whole response."""

    def __init__(self, reason: str, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal
        """`True` if a later request would be refused again."""

    @classmethod
    def of(cls, code: Any) -> "NoResponse":
        """Returns the reason of the host in words."""
        name = type(code).__name__.removeprefix("ErrorCode_")
        text = REASONS.get(name) or getattr(code, "value", None) or re.sub(r"(?<!^)([A-Z])", r" \1", name).lower()
        return cls(str(text), name.startswith(("HttpRequest", "DestinationIpProhibited", "HttpResponseBodySize")))


@dataclass
class Request:
    """Request whose address was checked."""

    secure: bool
    authority: str
    path: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout: float | None = None


def exchange(request: Request) -> tuple[int, dict[str, str], bytes]:
    """Sends a request, and returns the status, the headers and the body of its response."""
    outgoing = _outgoing(request)
    try:
        sink = outgoing.body()
        future = _handler.handle(outgoing, _options(request.timeout))
    except Err as error:
        raise NoResponse.of(error.value) from None
    with future:
        broken = _send(sink, request.body)
        with future.subscribe() as arrival:
            arrival.block()
        # A refusal of the request is the reason to report, not the closed body that follows from it.
        arrived = future.get().value
        if isinstance(arrived, Err):
            raise NoResponse.of(arrived.value)
        with arrived.value as response:
            answer = _read(response)
    if broken:
        raise broken
    return answer


def _outgoing(request: Request) -> Any:
    fields = _http.Fields()
    # Some servers do not take a body in chunks.
    length = {"content-length": str(len(request.body))} if request.body or request.method in ("POST", "PUT", "PATCH") else {}
    for name, value in (request.headers | length).items():
        _set(f"the header `{name}` is refused", fields.append, name, value.encode())
    outgoing = _http.OutgoingRequest(fields)
    named = request.method in METHODS
    method = getattr(_http, f"Method_{request.method.capitalize()}")() if named else _http.Method_Other(request.method)
    scheme = _http.Scheme_Https() if request.secure else _http.Scheme_Http()
    _set(f"`{request.method}` is not a method", outgoing.set_method, method)
    _set("the scheme is refused", outgoing.set_scheme, scheme)
    _set(f"`{request.authority}` is not a host", outgoing.set_authority, request.authority)
    _set(f"`{request.path}` is not a path", outgoing.set_path_with_query, request.path)
    return outgoing


def _set(refusal: str, function: Any, *arguments: Any) -> None:
    try:
        function(*arguments)
    except Err:
        raise Invalid(refusal) from None


def _options(timeout: float | None) -> Any:
    if timeout is None:
        return None
    options, nanoseconds = _http.RequestOptions(), max(1, int(timeout * 1e9))
    for limit in (options.set_connect_timeout, options.set_first_byte_timeout, options.set_between_bytes_timeout):
        _set("the time limit is refused", limit, nanoseconds)
    return options


def _send(sink: Any, body: bytes) -> NoResponse | None:
    """Sends a body; returns the reason why the host did not take it."""
    try:
        with sink.write() as stream:
            for start in range(0, len(body), PIECE):
                stream.blocking_write_and_flush(body[start : start + PIECE])
        _http.OutgoingBody.finish(sink, None)
    except Err as error:
        return _broken(error.value)
    return None


def _read(response: Any) -> tuple[int, dict[str, str], bytes]:
    headers: dict[str, str] = {}
    with response.headers() as fields:
        for name, value in fields.entries():
            name, text = name.lower(), value.decode("utf-8", "replace")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
    body = bytearray()
    with response.consume() as incoming, incoming.stream() as stream:
        while True:
            try:
                body += stream.blocking_read(64 << 10)
            except Err as error:
                if type(error.value).__name__ == "StreamError_Closed":
                    return response.status(), headers, bytes(body)
                raise _broken(error.value) from None
            if len(body) > MAX_BODY:
                raise NoResponse(f"the body of the answer is over the limit of {MAX_BODY} bytes", is_refusal=True)


def _broken(reason: Any) -> NoResponse:
    """Returns the reason of a broken stream."""
    failed = getattr(reason, "value", None)
    if failed is None or type(reason).__name__ != "StreamError_LastOperationFailed":
        return NoResponse.of(reason) if type(reason).__name__.startswith("ErrorCode_") else NoResponse("the connection was closed")
    with failed:
        code = _http.http_error_code(failed)
        return NoResponse.of(code) if code is not None else NoResponse(failed.to_debug_string())
