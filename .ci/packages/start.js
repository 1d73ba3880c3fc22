#!/usr/bin/env node
// Starts the program of the package for this platform, which npm installs as an optional dependency.
const platform = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "toolcrib.exe" : "toolcrib";

// Packages that may hold the program, the best first. A static program runs on every Linux.
function names() {
  if (process.platform !== "linux") return [`@toolcrib/${platform}`];
  const hasGlibc = Boolean(process.report.getReport().header.glibcVersionRuntime);
  return (hasGlibc ? ["gnu", "musl"] : ["musl"]).map((libc) => `@toolcrib/${platform}-${libc}`);
}

function find() {
  for (const name of names()) {
    try {
      return require.resolve(`${name}/bin/${file}`);
    } catch {}
  }
  const missing = names().map((name) => `\`${name}\``).join(" or ");
  console.error(`error: the package ${missing} is missing`);
  console.error("hint: `npm install toolcrib` without `--omit=optional` installs it, if there is a package for this platform");
  process.exit(1);
}

const program = find();
const child = require("child_process").spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these two to the program as well.
for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (error) => {
  console.error(`error: cannot start \`${program}\`: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exitCode = code ?? 128 + require("os").constants.signals[signal];
});
