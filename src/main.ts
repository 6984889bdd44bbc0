/**
 * The command line: starts the server, or runs a command of the operator. For the server, SIGHUP reads the configuration
 * again; SIGTERM and SIGINT stop it.
 */
import { openSignals } from "./start/signals.ts";

const signals = openSignals();
// All else is loaded only now, because that takes longer than anything before, and a signal may come meanwhile.
const { readCommandLine } = await import("./cli/command-line.ts");
const invocation = readCommandLine(process.argv.slice(2));
if (invocation.kind === "serve") {
  const { run } = await import("./start/run.ts");
  await run(invocation.configFile, signals);
} else {
  await signals.release();
  const [{ runOnHost }, { EXIT }] = await Promise.all([
    import("./cli/host.ts"),
    import("./limits/process.ts"),
  ]);
  // The reader of standard output has closed it (`audit | head`), which is not an error.
  process.stdout.on("error", () => process.exit(EXIT.refused));
  process.exitCode = await runOnHost(invocation, process);
}
