// Registered tools, their descriptors, and their calls.

import { Failed } from "./errors.js";
import { host } from "./host.js";
import { asJson, asText, parsed } from "./json.js";

/** Maximum number of characters of a stack in the log. */
const MAX_LOG = 16_384;
const registered = new Map();

/** Defines a tool. Its answer is what `run` returns; a `Failed` that `run` throws is an error for the model. */
export function tool({ name, description, parameters = {}, run }) {
  if (typeof name !== "string" || name === "") throw new TypeError("a tool has a `name`");
  if (registered.has(name)) throw new TypeError(`two tools have the name \`${name}\``);
  if (!description) throw new TypeError(`the tool \`${name}\` has no \`description\`, which tells a model what it is for`);
  if (typeof run !== "function") throw new TypeError(`the tool \`${name}\` has no function \`run\``);
  registered.set(name, { description, parameters, run });
}

/** Completes the descriptors of `descriptor.json` from the code. */
export function descriptors(metadata) {
  if (registered.size === 0) throw new TypeError("app.js has no tool: define one with `tool`");
  const given = new Map([metadata].flat().map((entry) => [entry.name, entry]));
  const unknown = [...given.keys()].find((name) => !registered.has(name));
  if (unknown !== undefined) throw new TypeError(`descriptor.json names \`${unknown}\`, which is not a tool of app.js`);
  return [...registered].map(([name, { description, parameters }]) => ({
    capabilities: {},
    name,
    description,
    schema: schema(parameters),
    ...given.get(name),
  }));
}

/** Returns the schema of an object with these parameters: required, unless `optional` or with a default. */
function schema(parameters) {
  const entries = Object.entries(parameters);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, { optional, ...parameter }]) => [name, parameter])),
    required: entries.filter(([, parameter]) => !parameter.optional && !("default" in parameter)).map(([name]) => name),
    additionalProperties: false,
  };
}

/** Runs a call: the export of the component. */
export function run(invocation) {
  try {
    const { parameters, run } = registered.get(invocation.tool);
    const given = parsed(invocation.payload.val);
    for (const [name, parameter] of Object.entries(parameters)) {
      if ("default" in parameter && given[name] === undefined) given[name] = structured(parameter.default);
    }
    return { content: content(invocation.tool, run(given)), display: [] };
  } catch (error) {
    throw failure(error);
  }
}

/** Returns the parts of an answer: text, JSON, or none. */
function content(name, answer) {
  if (answer === undefined) return [];
  if (typeof answer === "string") return [{ tag: "text", val: asText(answer) }];
  if (typeof answer?.then === "function") {
    throw new Failed(`\`${name}\` returned a promise; the functions of the host wait by themselves, without \`async\``);
  }
  try {
    if (typeof answer === "function" || typeof answer === "symbol") throw new TypeError(`a ${typeof answer}`);
    return [{ tag: "json", val: asJson(answer) }];
  } catch (error) {
    throw new Failed(`the answer of \`${name}\` is not JSON: ${error.message}`);
  }
}

/** Copies a default, so that no call changes it. */
const structured = (value) => JSON.parse(JSON.stringify(value));

/** Returns a failure of the contract. */
function failure(error) {
  if (error instanceof Failed) {
    return { kind: error.kind, message: asText(error.message), details: details(error.details) };
  }
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `threw ${typeof error === "object" ? JSON.stringify(error) : String(error)}`;
  const stack = error?.stack ?? "";
  host.log.log("error", asText(`${text}\n${stack}`.slice(0, MAX_LOG)));
  const places = stack.split("\n").filter((line) => !line.includes("/toolcrib/"));
  const place = places.map((line) => /([^\s(/]+\.m?js:\d+)/.exec(line)?.[1]).find((at) => at !== undefined);
  return { kind: "failed", message: asText(place ? `${place}: ${text}` : text), details: null };
}

function details(value) {
  try {
    return value ? asJson(value) : null;
  } catch (error) {
    host.log.log("warn", `the details of an error are not JSON: ${error.message}`);
    return null;
  }
}
