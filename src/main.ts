/** The command line: starts the server. SIGHUP reads the configuration again; SIGTERM and SIGINT stop the server. */
import { parseArgs } from "node:util";
import { openSignals } from "./start/signals.ts";

const DEVELOPMENT_CONFIG = "data/config.json";

const signals = openSignals();
const { values } = parseArgs({ options: { config: { type: "string", default: DEVELOPMENT_CONFIG } } });
// Loaded only now: that takes longer than anything before, and a signal may come meanwhile.
const { run } = await import("./start/run.ts");
await run(values.config, signals);
