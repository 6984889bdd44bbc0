/**
 * The command line: starts the server, or runs a command of the operator. For the server, SIGHUP reads the configuration
 * again; SIGTERM and SIGINT stop it.
 */
import { readCommandLine } from "./cli/command-line.ts";
import { EXIT } from "./limits.ts";
import { openSignals } from "./start/signals.ts";

const invocation = readCommandLine(process.argv.slice(2));
if (invocation.kind === "serve") {
  const signals = openSignals();
  // Loaded only now: that takes longer than anything before, and a signal may come meanwhile.
  const { run } = await import("./start/run.ts");
  await run(invocation.configFile, signals);
} else {
  const { runOnHost } = await import("./cli/host.ts");
  // The reader of standard output has closed it (`audit | head`), which is not an error.
  process.stdout.on("error", () => process.exit(EXIT.refused));
  process.exitCode = await runOnHost(invocation, process);
}
