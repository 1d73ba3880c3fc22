// Entry of the component: connects the contract with `app.js`. `wasj` becomes `wasi` when the component is built: the compiler
// can run `app.js` only with imports that it does not know.

import * as cache from "toolcrib:tool/cache@1.1.0";
import * as log from "toolcrib:tool/log@1.1.0";
import * as model from "toolcrib:tool/model@1.1.0";
import * as progress from "toolcrib:tool/progress@1.1.0";
import * as secrets from "toolcrib:tool/secrets@1.1.0";
import * as tools from "toolcrib:tool/tools@1.1.0";
import * as clock from "wasj:clocks/monotonic-clock@0.2.0";
import * as handler from "wasj:http/outgoing-handler@0.2.0";
import * as http from "wasj:http/types@0.2.0";
import * as random from "wasj:random/random@0.2.0";
import "../app.js";
import { console, host } from "./host.js";
import { run } from "./tools.js";

globalThis.console = console;
// The generator of the language has the same state in each call: that of the moment when the component was built.
Math.random = () => random.getRandomBytes(6).reduce((number, byte) => (number + byte) / 256, 0);
Object.assign(host, { cache, clock, handler, http, log, model, progress, secrets, tools });

export const call = { run };
