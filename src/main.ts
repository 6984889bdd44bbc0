/** The command line: starts the server. SIGHUP reads the configuration again; SIGTERM and SIGINT stop the server. */
import { parseArgs } from "node:util";
import type { Config } from "./config/config.ts";
import { loadConfig } from "./config/config.ts";
import { StoreUnavailable } from "./ports.ts";
import type { Listeners } from "./start/listeners.ts";
import { openListeners } from "./start/listeners.ts";
import { openService, StartRefused } from "./start/service.ts";

const DEVELOPMENT_CONFIG = "data/config.json";

const { values } = parseArgs({ options: { config: { type: "string", default: DEVELOPMENT_CONFIG } } });
const configFile = values.config;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const printError = (line: string): void => void process.stderr.write(`${line}\n`);

function giveUp(lines: readonly string[]): never {
  for (const line of lines) printError(line);
  process.exit(1);
}

function readConfig(): Config {
  const config = loadConfig(configFile);
  if (config.ok) return withWarnings(config.value);
  giveUp([`Invalid configuration in ${configFile}:`, ...config.error.map((problem) => `  ${problem}`)]);
}

function withWarnings(config: Config): Config {
  for (const warning of config.warnings) print(`warning: ${warning}`);
  return config;
}

let listeners: Listeners | undefined;

/** Without a journal nothing may be answered: requests that have begun are finished, and the process ends. */
async function onFatal(reason: string): Promise<void> {
  printError(reason);
  await listeners?.shutdown().catch(() => undefined);
  process.exit(1);
}

async function start(): Promise<void> {
  const config = readConfig();
  const service = await openService(config, { print, printError, onFatal });
  const opened = await openListeners(config.fixed, service, configFile, print);
  listeners = opened;

  const reload = (): void => {
    const next = loadConfig(configFile);
    const { issuer } = service.ports.settings();
    const problems = next.ok ? [] : [...next.error];
    if (next.ok && next.value.settings.issuer !== issuer) {
      problems.push("issuer: cannot change while the server runs; restart it");
    }
    // With a problem the settings in force stay in force.
    for (const problem of problems) print(`not reloaded: ${problem}`);
    if (next.ok && problems.length === 0) service.apply(withWarnings(next.value).settings);
  };
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await opened.shutdown();
    await service.close();
    await opened.close();
    process.exit(0);
  };
  process.on("SIGHUP", reload);
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // The last step: a process that waits for this line may send a signal at once.
  print(`Mandate ${service.ports.settings().issuer} listens on ${opened.address}:${opened.port}.`);
}

await start().catch((fault) => {
  if (fault instanceof StartRefused) giveUp([fault.message]);
  if (fault instanceof StoreUnavailable)
    giveUp([`The store in ${configFile} is not available: ${fault.message}`]);
  throw fault;
});
