// Prints the descriptors of the tools in `app.js`, completed from `descriptor.json`, for `toolcrib describe`.

import { readFileSync } from "node:fs";
import "../app.js";
import { descriptors } from "./tools.js";

/** Reads the file of the author. */
function metadata() {
  try {
    return JSON.parse(readFileSync("descriptor.json", "utf8"));
  } catch (error) {
    throw new TypeError(`descriptor.json: ${error.message}`);
  }
}

try {
  console.log(JSON.stringify(descriptors(metadata())));
} catch (error) {
  console.error(`build: ${error.message}`);
  process.exitCode = 1;
}
