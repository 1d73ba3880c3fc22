// JSON without losses: `JSON.stringify` writes some values as others, and `JSON.parse` rounds large integers.

import { Invalid } from "./errors.js";

/** Replaces half of a surrogate pair, which is no character. */
export const asText = (value) => String(value).replace(/\p{Surrogate}/gu, "\ufffd");

/** Writes a value as JSON; `undefined` is null. A value that JSON cannot hold is a `TypeError`. */
export const asJson = (value) => asText(JSON.stringify(value, checked) ?? "null");

/** Parses the arguments of a call. */
export function parsed(text) {
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d[\d.eE+-]*/g) ?? [];
  const rounded = numbers.find((number) => /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)));
  if (rounded !== undefined) throw new Invalid(`${rounded} is no exact number in JavaScript; pass it as a text`);
  return JSON.parse(text);
}

function checked(name, value) {
  const kind = typeof value === "number" && !Number.isFinite(value) ? String(value) : unwritten(value);
  if (kind !== undefined) throw new TypeError(name === "" ? kind : `${kind} in \`${name}\``);
  return value;
}

/** Returns the kind of an object whose content JSON leaves out. */
function unwritten(value) {
  if (typeof value !== "object" || value === null) return undefined;
  const kinds = [Map, Set, WeakMap, WeakSet, ArrayBuffer, Error, RegExp, Promise];
  const kind = kinds.find((one) => value instanceof one) ?? (ArrayBuffer.isView(value) ? value.constructor : undefined);
  return kind && `a value of the type ${kind.name}`;
}
