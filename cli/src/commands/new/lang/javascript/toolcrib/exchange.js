// One request through `wasi:http`, and its whole response.

import { Invalid } from "./errors.js";
import { host } from "./host.js";
import { decode, encode } from "./text.js";

/** Maximum size of a response's body, in bytes. */
const MAX_BODY = 8 << 20;
/** Maximum size of one write to the host, in bytes. */
const PIECE = 4096;
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
/** Words for the reasons of the host. */
const REASONS = {
  "HTTP-request-denied": "the host is not allowed",
  "destination-IP-prohibited": "its address is prohibited",
  "DNS-timeout": "there is no such host",
  "DNS-error": "there is no such host",
  "destination-not-found": "there is no such host",
  "destination-unavailable": "the host cannot be reached",
  "destination-IP-unroutable": "the host cannot be reached",
  "connection-refused": "the connection was refused",
  "connection-terminated": "the connection was closed",
  "HTTP-response-incomplete": "the connection was closed",
  "connection-timeout": "connecting took too long",
  "connection-read-timeout": "the answer took too long",
  "HTTP-response-timeout": "the answer took too long",
  "connection-write-timeout": "sending took too long",
  "connection-limit-reached": "the limit of requests is reached",
  "TLS-protocol-error": "the secure connection failed",
  "TLS-certificate-error": "the secure connection failed",
  "TLS-alert-received": "the secure connection failed",
  "HTTP-request-method-invalid": "the method is refused",
  "HTTP-request-URI-invalid": "the address is refused",
  "HTTP-request-URI-too-long": "the address is refused",
  "HTTP-request-body-size": "the body is too large",
  "HTTP-response-body-size": "the body of the answer is too large",
};

/** Request without a whole response. */
export class NoResponse extends Error {
  constructor(message, isRefusal = false) {
    super(message);
    /** `true` if a later request would be refused again. */
    this.isRefusal = isRefusal;
  }

  /** Returns the reason of the host in words. */
  static of(code) {
    const { tag, val } = code?.tag === undefined ? { tag: String(code) } : code;
    const words = REASONS[tag] ?? (typeof val === "string" ? val : tag.replaceAll("-", " "));
    return new NoResponse(words, /^HTTP-request|^destination-IP-prohibited|^HTTP-response-body-size/.test(tag));
  }
}

/** Sends a request whose address was checked, and returns `status`, `headers` and `body` of its response. */
export function exchange(request) {
  const outgoing = created(request);
  const sink = attempt(() => outgoing.body());
  return owned(
    attempt(() => host.handler.handle(outgoing, options(request.timeout))),
    (future) => {
      const broken = send(sink, request.content);
      owned(future.subscribe(), (arrival) => arrival.block());
      // A refusal of the request is the reason to report, not the closed body that follows from it.
      const arrived = future.get().val;
      if (arrived.tag === "err") throw NoResponse.of(arrived.val);
      const answer = owned(arrived.val, read);
      if (broken) throw broken;
      return answer;
    },
  );
}

/** Uses a resource of the host and releases it: the host refuses to release one whose parts are in use. */
function owned(resource, use) {
  try {
    return use(resource);
  } finally {
    resource[Symbol.dispose]();
  }
}

/** Calls a function of the host; its reason becomes the reason of the request's failure. */
function attempt(call) {
  try {
    return call();
  } catch (error) {
    throw broke(error);
  }
}

function created({ method, secure, authority, path, fields, content }) {
  const headers = new host.http.Fields();
  const hasBody = content.length > 0 || ["POST", "PUT", "PATCH"].includes(method);
  // Some servers do not take a body in chunks.
  const length = hasBody ? { "content-length": String(content.length) } : {};
  for (const [name, value] of Object.entries({ ...fields, ...length })) {
    set(`the header \`${name}\` is refused`, () => headers.append(name, encode(value)));
  }
  const outgoing = new host.http.OutgoingRequest(headers);
  const known = METHODS.includes(method) ? { tag: method.toLowerCase() } : { tag: "other", val: method };
  set(`\`${method}\` is not a method`, () => outgoing.setMethod(known));
  set("the scheme is refused", () => outgoing.setScheme({ tag: secure ? "HTTPS" : "HTTP" }));
  set(`\`${authority}\` is not a host`, () => outgoing.setAuthority(authority));
  set(`\`${path}\` is not a path`, () => outgoing.setPathWithQuery(path));
  return outgoing;
}

function set(refusal, act) {
  try {
    act();
  } catch {
    throw new Invalid(refusal);
  }
}

function options(timeout) {
  if (timeout === undefined) return null;
  const [limits, nanoseconds] = [new host.http.RequestOptions(), Math.max(1, Math.round(timeout * 1e6))];
  limits.setConnectTimeout(nanoseconds);
  limits.setFirstByteTimeout(nanoseconds);
  limits.setBetweenBytesTimeout(nanoseconds);
  return limits;
}

/** Sends a body; returns the reason why the host did not take it. */
function send(sink, content) {
  try {
    owned(sink.write(), (stream) => {
      for (let start = 0; start < content.length; start += PIECE) {
        stream.blockingWriteAndFlush(content.subarray(start, start + PIECE));
      }
    });
    host.http.OutgoingBody.finish(sink, null);
    return undefined;
  } catch (error) {
    return broke(error);
  }
}

function read(response) {
  const headers = {};
  for (const [name, value] of owned(response.headers(), (fields) => fields.entries())) {
    const [key, text] = [name.toLowerCase(), decode(value)];
    headers[key] = headers[key] === undefined ? text : `${headers[key]}, ${text}`;
  }
  const body = owned(response.consume(), (incoming) => owned(incoming.stream(), whole));
  return { status: response.status(), headers, body };
}

/** Reads a stream to its end. */
function whole(stream) {
  const pieces = [];
  let length = 0;
  for (;;) {
    let piece;
    try {
      piece = stream.blockingRead(64 << 10);
    } catch (error) {
      if (error?.payload?.tag === "closed") break;
      throw broke(error);
    }
    pieces.push(piece);
    length += piece.length;
    if (length > MAX_BODY) throw new NoResponse(`the body of the answer is over the limit of ${MAX_BODY} bytes`, true);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.length;
  }
  return body;
}

/** Returns the reason of a failed function of the host. */
function broke(error) {
  const reason = error?.payload;
  if (reason?.tag === undefined) return error instanceof Error ? error : new NoResponse(String(error));
  if (reason.tag === "closed") return new NoResponse("the connection was closed");
  if (reason.tag !== "last-operation-failed") return NoResponse.of(reason);
  return owned(reason.val, (failed) => {
    const code = host.http.httpErrorCode(failed);
    return code ? NoResponse.of(code) : new NoResponse(failed.toDebugString());
  });
}
