// Functions of the host: output for people, the log, other tools, the model, the cache, pauses, and names of secrets.

import { Failed, KINDS, Unavailable } from "./errors.js";
import { asJson, asText } from "./json.js";

const missing = new Proxy(
  {},
  {
    get(_, name) {
      throw new Unavailable(`\`${String(name)}\` exists only in a component, while toolcrib runs a call`);
    },
  },
);

/** Modules of the contract, which only a component has. */
export const host = { cache: missing, clock: missing, http: missing, handler: missing, log: missing, model: missing };
Object.assign(host, { progress: missing, secrets: missing, tools: missing });

/** Calls a function of the host; `failed` makes an error of its reason. */
function attempt(call, failed) {
  try {
    return call();
  } catch (error) {
    throw error instanceof Failed ? error : failed(error.message);
  }
}

/** Returns the error of another tool, with its kind. */
function failedTool(text) {
  try {
    const { error, kind, details } = JSON.parse(text);
    return new (KINDS[kind] ?? Failed)(error ?? text, details);
  } catch {
    return new Failed(text);
  }
}

/** Reports progress: `done` of `total` steps, if the total is known. */
export function progress(done, total) {
  host.progress.measure(done, total ?? null);
}

/** Shows text, or another value as JSON, to people while the call runs. The model does not receive it. */
export function show(value) {
  host.progress.show(typeof value === "string" ? { tag: "text", val: asText(value) } : { tag: "json", val: asJson(value) });
}

/** Logs a message for people. */
export function log(message, level = "info") {
  host.log.log(level, asText(message));
}

/** Console of the language, which writes to the log. */
export const console = Object.fromEntries(
  ["debug", "log", "info", "warn", "error"].map((name) => [
    name,
    (...values) => log(values.map(shown).join(" "), name === "log" ? "info" : name),
  ]),
);

function shown(value) {
  if (value instanceof Error) return `${value.name}: ${value.message}\n${value.stack}`;
  return typeof value === "object" && value !== null ? (JSON.stringify(value) ?? String(value)) : String(value);
}

/** Calls another tool, as far as `descriptor.json` requests and the user allows it: `"tools": ["NAME"]`. */
export function call(name, args = {}) {
  const answer = attempt(() => host.tools.call(name, asJson(args)), failedTool);
  try {
    return JSON.parse(answer);
  } catch {
    return answer;
  }
}

/** Asks the host's model, as far as `descriptor.json` requests and the user allows it: `"model": true`. */
export function ask(prompt, { system, maxTokens } = {}) {
  const question = { system: system ?? null, prompt: asText(prompt), maxTokens: maxTokens ?? null };
  return attempt(() => host.model.complete(question), (reason) => new Unavailable(reason)).text;
}

/** Values for the tools of this component, as long as the run lasts. */
export const cache = {
  get: (key) => host.cache.get(key) ?? undefined,
  set: (key, value) => attempt(() => host.cache.set(key, asText(value)), (reason) => new Failed(reason)),
};

/** Lists the secrets that the host inserts into requests. A tool never gets their values. */
export function secrets() {
  return host.secrets.granted();
}

/** Waits. */
export function sleep(milliseconds) {
  const end = host.clock.subscribeDuration(Math.round(milliseconds * 1e6));
  end.block();
  end[Symbol.dispose]();
}
