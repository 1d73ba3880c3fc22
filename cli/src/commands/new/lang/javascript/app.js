// The tool: each call of `tool` defines one. QuickJS implements only the language: no files, no timers, no require.

import { Invalid, tool } from "./toolcrib/index.js";

tool({
  name: "SNAKE",
  description: "Greet someone by name.",
  parameters: { name: { type: "string", description: "Whom to greet" } },
  run({ name }) {
    if (name === "") throw new Invalid("the name is empty");
    return `hello, ${name}`;
  },
});
