// Prints the descriptors of the tools in `app.js`, completed from `descriptor.json`, for `toolcrib describe`.

import { readFileSync } from "node:fs";
import "../app.js";
import { descriptors } from "./tools.js";

console.log(JSON.stringify(descriptors(JSON.parse(readFileSync("descriptor.json", "utf8")))));
