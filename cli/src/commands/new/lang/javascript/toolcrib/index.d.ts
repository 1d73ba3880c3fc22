// Types of `toolcrib`: tools in JavaScript. The functions of the host work while a call runs; in Node.js, for a test, they fail.

/** Schema of one value: JSON Schema 2020-12. */
export interface Schema {
  readonly type?: "string" | "number" | "integer" | "boolean" | "array" | "object" | "null";
  readonly description?: string;
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly default?: unknown;
  readonly items?: Schema;
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** Schema of one argument; `optional` if a call may leave it out. An argument with a default may be left out too. */
export interface Parameter extends Schema {
  readonly optional?: boolean;
}

/** Type of the values of a schema. */
export type Value<S> = S extends { readonly enum: readonly (infer E)[] }
  ? E
  : S extends { readonly type: "string" }
    ? string
    : S extends { readonly type: "number" | "integer" }
      ? number
      : S extends { readonly type: "boolean" }
        ? boolean
        : S extends { readonly type: "null" }
          ? null
          : S extends { readonly type: "array"; readonly items: infer I }
            ? Value<I>[]
            : S extends { readonly type: "object"; readonly properties: infer P; readonly required: readonly (infer R)[] }
              ? { [K in keyof P & R]: Value<P[K]> } & { [K in Exclude<keyof P, R>]?: Value<P[K]> }
              : S extends { readonly type: "object"; readonly properties: infer P }
                ? { [K in keyof P]?: Value<P[K]> }
                : any;

/** Arguments of a call. */
export type Arguments<P> = {
  [K in keyof P as P[K] extends { readonly optional: true } ? never : K]: Value<P[K]>;
} & {
  [K in keyof P as P[K] extends { readonly optional: true } ? K : never]?: Value<P[K]>;
};

/**
 * Defines a tool. Its answer is what `run` returns: text, a value that becomes JSON, or nothing. A `Failed` that `run` throws is an
 * error for the model.
 */
export function tool<const P extends { readonly [name: string]: Parameter } = {}>(definition: {
  /** Name for models; `descriptor.json` uses it too. */
  name: string;
  /** Purpose, for models. */
  description: string;
  /** Schema of each argument. */
  parameters?: P;
  /** Runs a call. */
  run: (args: Arguments<P>) => unknown;
}): void;

/** A failure, with details for the model: members of a JSON object. */
export class Failed extends Error {
  constructor(message: string, details?: { [name: string]: unknown });
  readonly kind: "failed" | "invalid" | "not-found" | "conflict" | "unavailable";
  readonly details?: { [name: string]: unknown };
}
/** The call is invalid; the caller can correct it. */
export class Invalid extends Failed {}
/** The requested object does not exist. */
export class NotFound extends Failed {}
/** The current state conflicts with the call. */
export class Conflict extends Failed {}
/** An external service does not respond; a later call may succeed. */
export class Unavailable extends Failed {}

/** Response with its whole body. */
export class Response {
  /** Address of the request, without its query. */
  readonly url: string;
  readonly status: number;
  /** Headers, with names in lower case. */
  readonly headers: { readonly [name: string]: string };
  readonly body: Uint8Array;
  /** `true` for a status of success. */
  readonly ok: boolean;
  /** Returns the body as text; bytes that are not UTF-8 are replaced. */
  text(): string;
  /** Parses the body as JSON. */
  json(): any;
  /** Fails with the kind that fits the status, such as `NotFound` for 404, unless it is a status of success. */
  throwForStatus(): this;
}

/**
 * Sends a request and reads its whole response, whatever its status. No redirect is followed. A request without a response fails as
 * `Unavailable`, or as `Failed` if it is refused.
 */
export function fetch(
  url: string,
  options?: {
    method?: string;
    /** Values to add to the query. */
    params?: { readonly [name: string]: unknown };
    headers?: { readonly [name: string]: string };
    body?: string | Uint8Array;
    /** Value to send as the body. */
    json?: unknown;
    /** Maximum milliseconds to connect, to the first byte, and between two bytes. */
    timeout?: number;
  },
): Response;

/** Reports progress: `done` of `total` steps, if the total is known. */
export function progress(done: number, total?: number): void;
/** Shows text, or another value as JSON, to people while the call runs. The model does not receive it. */
export function show(value: unknown): void;
/** Logs a message for people. */
export function log(message: string, level?: "debug" | "info" | "warn" | "error"): void;
declare global {
  /** Writes to the log. */
  const console: Record<"debug" | "log" | "info" | "warn" | "error", (...values: unknown[]) => void>;
}
/** Calls another tool, as far as `descriptor.json` requests and the user allows it: `"tools": ["NAME"]`. */
export function call(name: string, args?: { readonly [name: string]: unknown }): any;
/** Asks the host's model, as far as `descriptor.json` requests and the user allows it: `"model": true`. */
export function ask(prompt: string, options?: { system?: string; maxTokens?: number }): string;
/** Lists the secrets that the host inserts into requests. A tool never gets their values. */
export function secrets(): string[];
/** Waits. */
export function sleep(milliseconds: number): void;
/** Values for the tools of this component, as long as the run lasts. */
export const cache: {
  get(key: string): string | undefined;
  set(key: string, value: string): void;
};
