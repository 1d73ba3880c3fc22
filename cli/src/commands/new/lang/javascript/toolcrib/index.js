// Tools in JavaScript for toolcrib. `index.d.ts` describes each name. The functions of the host work while a call runs; in Node.js,
// for a test, they fail.

export { Conflict, Failed, Invalid, NotFound, Unavailable } from "./errors.js";
export { ask, cache, call, log, progress, secrets, show, sleep } from "./host.js";
export { Response, fetch } from "./http.js";
export { tool } from "./tools.js";
