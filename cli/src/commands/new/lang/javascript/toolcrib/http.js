// Requests over the granted network. The host inserts secrets, follows no redirect, and limits what a call sends and receives.

import { Conflict, Failed, Invalid, NotFound, Unavailable } from "./errors.js";
import { NoResponse, exchange } from "./exchange.js";
import { asJson, asText } from "./json.js";
import { decode, encode } from "./text.js";

/** Kinds of failures for statuses below 500. */
const KINDS = { 400: Invalid, 404: NotFound, 408: Unavailable, 409: Conflict, 410: NotFound, 412: Conflict, 422: Invalid };
Object.assign(KINDS, { 425: Unavailable, 429: Unavailable });

/** Response with its whole body. Names of headers are in lower case. */
export class Response {
  constructor(url, status, headers, body) {
    Object.assign(this, { url, status, headers, body });
  }

  /** `true` for a status of success. */
  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  /** Returns the body as text; bytes that are not UTF-8 are replaced. */
  text() {
    return decode(this.body);
  }

  /** Parses the body as JSON. */
  json() {
    try {
      return JSON.parse(this.text());
    } catch (error) {
      throw new Failed(`${this.url} did not answer with JSON: ${error.message}`);
    }
  }

  /** Fails with the kind that fits the status, such as `NotFound` for 404, unless it is a status of success. */
  throwForStatus() {
    if (this.ok) return this;
    const Kind = KINDS[this.status] ?? (this.status >= 500 ? Unavailable : Failed);
    throw new Kind(`${this.url} answered with status ${this.status}`, { status: this.status });
  }
}

/**
 * Sends a request and reads its whole response, whatever its status.
 *
 * `params` are added to the query, and `json` is sent as the body. `timeout` limits, in milliseconds, the time to connect, to the
 * first byte, and between two bytes. A request without a response fails as `Unavailable`, or as `Failed` if it is refused.
 */
export function fetch(url, { method = "GET", params = {}, headers = {}, body = "", json, timeout } = {}) {
  const { secure, authority, path, shown } = addressed(String(url), params);
  const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
  if (json !== undefined) {
    body = asJson(json);
    fields["content-type"] ??= "application/json";
  }
  const content = typeof body === "string" ? encode(body) : body;
  try {
    const answer = exchange({ method: method.toUpperCase(), secure, authority, path, fields, content, timeout });
    return new Response(shown, answer.status, answer.headers, answer.body);
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error;
    throw new (error.isRefusal ? Failed : Unavailable)(`${shown}: ${error.message}`);
  }
}

/** Splits an address; `shown` is the address without its query, for messages. */
function addressed(url, params) {
  const [, scheme, authority, place = "", query = ""] = /^(https?):\/\/([!-.0-9:;=A-\[\]_a-z~]+)(\/[^?#]*)?(?:\?([^#]*))?(?:#.*)?$/is.exec(url) ?? [];
  if (scheme === undefined || authority.includes("@")) {
    throw new Invalid(`\`${url}\` is not an address such as \`https://example.com/path\``);
  }
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null);
  const added = given.flatMap(([name, value]) => [value].flat().map((one) => `${escaped(name)}=${escaped(one)}`));
  const path = encoded(place || "/");
  const search = [encoded(query), ...added].filter((part) => part !== "").join("&");
  const shown = `${scheme.toLowerCase()}://${authority}${path}`;
  return { secure: scheme.toLowerCase() === "https", authority, path: search === "" ? path : `${path}?${search}`, shown };
}

const escaped = (text) => encodeURIComponent(asText(text));
/** Escapes what may not stand in an address, and nothing that is already escaped. */
const encoded = (text) => asText(text).replace(/[^!#-;=?-Z_a-z~\[\]]+/gu, encodeURIComponent);
