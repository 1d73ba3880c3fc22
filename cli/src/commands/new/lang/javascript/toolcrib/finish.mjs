// Names the imports of a component as WASI: the compiler cannot run a script with `wasi:http`, so `wit` names it `wasj:http`.
//
//   node finish.mjs IN OUT

import { readFileSync, writeFileSync } from "node:fs";

const [input, output] = process.argv.slice(2);
const bytes = readFileSync(input);
/** Identifier of a section of imports in a component. */
const IMPORTS = 10;
/** Length of the header of a component. */
const HEADER = 8;

let renamed = 0;
for (let at = HEADER; at < bytes.length; ) {
  const section = bytes[at];
  let [size, shift] = [0, 0];
  do {
    at += 1;
    size += (bytes[at] & 0x7f) * 2 ** shift;
    shift += 7;
  } while (bytes[at] & 0x80);
  at += 1;
  const content = bytes.subarray(at, at + size);
  for (let found = content.indexOf("wasj:"); section === IMPORTS && found >= 0; found = content.indexOf("wasj:", found)) {
    content.write("wasi:", found);
    renamed += 1;
  }
  at += size;
}
if (renamed === 0) throw new Error(`${input} has no import to rename; is it a component of this project?`);
writeFileSync(output, bytes);
