/** The command line: starts the server. SIGHUP reads the configuration again; SIGTERM and SIGINT stop the server. */
import { parseArgs } from "node:util";
import type { Config } from "./config/config.ts";
import { loadConfig } from "./config/config.ts";
import { StoreUnavailable } from "./ports.ts";
import type { Listeners } from "./start/listeners.ts";
import { openListeners } from "./start/listeners.ts";
import type { Log } from "./start/log.ts";
import { openLog, printError } from "./start/log.ts";
import { StartRefused } from "./start/refused.ts";
import { openService } from "./start/service.ts";

const DEVELOPMENT_CONFIG = "data/config.json";

const { values } = parseArgs({ options: { config: { type: "string", default: DEVELOPMENT_CONFIG } } });
const configFile = values.config;

function giveUp(lines: readonly string[]): never {
  for (const line of lines) printError(line);
  process.exit(1);
}

function readConfig(): Config {
  const config = loadConfig(configFile);
  if (config.ok) return config.value;
  giveUp([`Invalid configuration in ${configFile}:`, ...config.error.map((problem) => `  ${problem}`)]);
}

const tellWarnings = (log: Log, { warnings }: Config): void => {
  for (const message of warnings) log.tell({ level: "warning", event: "config_warning", message });
};

async function start(): Promise<void> {
  const config = readConfig();
  const log = openLog(config.fixed.profile);
  tellWarnings(log, config);
  let listeners: Listeners | undefined;
  /** Without a journal nothing may be answered: requests that have begun are finished, and the process ends. */
  const onFatal = async (message: string): Promise<void> => {
    log.tell({ level: "error", event: "audit_fault", message });
    await listeners?.shutdown().catch(() => undefined);
    log.close();
    process.exit(1);
  };
  const service = await openService(config, { log, onFatal });
  const opened = await openListeners(config.fixed, service, configFile, log);
  listeners = opened;

  const reload = (): void => {
    const next = loadConfig(configFile);
    const { issuer } = service.ports.settings();
    const problems = next.ok ? [] : [...next.error];
    if (next.ok && next.value.settings.issuer !== issuer) {
      problems.push("issuer: cannot change while the server runs; restart it");
    }
    // With a problem the settings in force stay in force.
    for (const problem of problems) {
      log.tell({ level: "warning", event: "reload_refused", message: `not reloaded: ${problem}` });
    }
    if (!next.ok || problems.length > 0) return;
    tellWarnings(log, next.value);
    service.apply(next.value.settings);
    log.tell({ level: "info", event: "reloaded", message: `reloaded: ${configFile}` });
  };
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    service.announceStop();
    await opened.shutdown();
    await service.close();
    await opened.close();
    log.close();
    process.exit(0);
  };
  process.on("SIGHUP", reload);
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // The last step: a process that waits for this line may send a signal at once.
  const { address, port } = opened;
  const message = `Mandate ${service.ports.settings().issuer} listens on ${address}:${port}.`;
  log.tell({ level: "info", event: "listening", message, listener: "listen", address, port });
}

await start().catch((fault) => {
  if (fault instanceof StartRefused) giveUp([fault.message]);
  if (fault instanceof StoreUnavailable)
    giveUp([`The store in ${configFile} is not available: ${fault.message}`]);
  throw fault;
});
