/** One run of the server, from its configuration file to the signal that ends it. */
import { KeysUnusable } from "../adapters/crypto/seal.ts";
import { mayUseNet, NO_NET } from "../adapters/process.ts";
import { KeyServiceUnavailable } from "../adapters/remote/key-service.ts";
import { DatabaseTooNew } from "../adapters/store/migrations.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { EXIT } from "../limits/process.ts";
import { StoreUnavailable } from "../ports.ts";
import { makeInForce } from "./in-force.ts";
import { type Listeners, openListeners, openOperations } from "./listeners.ts";
import { type Log, openLog, printError } from "./log.ts";
import { StartRefused } from "./refused.ts";
import { makeReload, tellWarnings } from "./reload.ts";
import { settleRestored } from "./restored.ts";
import { openService } from "./service.ts";
import type { Signals } from "./signals.ts";

/** Ends the process if the server cannot start, or is told to stop before it listens. */
export async function run(configFile: string, signals: Signals): Promise<void> {
  const config = readConfig(configFile);
  const log = openLog(config.fixed.profile);
  try {
    await start(configFile, config, log, signals);
  } catch (fault) {
    if (fault === signals.stopped.reason) endAtStart(log);
    if (fault instanceof StartRefused || fault instanceof KeysUnusable) giveUp(EXIT.refused, [fault.message]);
    if (fault instanceof DatabaseTooNew) giveUp(EXIT.unavailable, [`store: ${fault.message}`]);
    if (fault instanceof KeyServiceUnavailable) giveUp(EXIT.unavailable, [`keys.service: ${fault.message}`]);
    if (fault instanceof StoreUnavailable)
      giveUp(EXIT.unavailable, [`The store in ${configFile} is not available: ${fault.message}`]);
    throw fault;
  }
}

async function start(configFile: string, config: Config, log: Log, signals: Signals): Promise<void> {
  const { stopped } = signals;
  if (!mayUseNet()) throw new StartRefused(`${NO_NET}.`);
  tellWarnings(log, config);
  let listeners: Listeners | undefined;
  /** Without a journal nothing may be answered: requests that have begun are finished, and the process ends. */
  const onFatal = async (message: string): Promise<void> => {
    log.tell({ level: "error", event: "audit_fault", message });
    await listeners?.shutdown().catch(() => undefined);
    log.close();
    process.exit(1);
  };
  const service = await openService(config, { log, onFatal, stopped });
  const endIfStopped = async (): Promise<void> => {
    if (!stopped.aborted) return;
    await service.close();
    endAtStart(log);
  };
  await endIfStopped();
  // Before the wait for what a restored store does not know, so that the supervisor sees a process that lives.
  let serves = false;
  const inForce = makeInForce(config, service.ports.clock);
  const watch = {
    ...service.watch,
    configuration: inForce.state,
    stopping: () => !serves || service.watch.stopping(),
  };
  const health = await openOperations(config.fixed, { ...service, watch }, configFile, log);
  await settleRestored({ ...service, mark: service.restored, log, stopped });
  await endIfStopped();
  const opened = await openListeners(config.fixed, service, configFile, log);
  listeners = opened;
  service.watchStore();
  serves = true;

  // The last step but one: a process that waits for this line may send a signal at once.
  const { address, port } = opened;
  const message = `Mandate ${service.ports.settings().issuer} listens on ${address}:${port}.`;
  log.tell({ level: "info", event: "listening", message, listener: "listen", address, port });
  const reload = makeReload({ configFile, started: config.fixed, inForce, service, opened, log });
  const close = async (): Promise<void> => {
    await opened.shutdown();
    await service.close();
    await health?.close();
    log.close();
    process.exit(0);
  };
  const begin = (): void => {
    reload.stop();
    service.announceStop();
  };
  const stop = makeStop({ begin, drain: opened.drain, close }, config.fixed.listen.drainSeconds, log);
  signals.answer({ reload: reload.fromFile, stop });
}

type Stopping = { begin(): void; drain(): void; close(): Promise<void> };

/** What a signal to stop does; a second one ends the time in which the server serves on. */
function makeStop({ begin, drain, close }: Stopping, drainSeconds: number, log: Log): () => Promise<void> {
  const drained = Promise.withResolvers<void>();
  let stopping = false;
  return async () => {
    if (stopping) return drained.resolve();
    stopping = true;
    begin();
    if (drainSeconds > 0) {
      const message = `Not ready from now on; serves for ${drainSeconds} s more (listen.drainSeconds).`;
      log.tell({ level: "info", event: "draining", message });
      drain();
      setTimeout(drained.resolve, 1000 * drainSeconds);
      await drained.promise;
    }
    await close();
  };
}

function readConfig(configFile: string): Config {
  const config = loadConfig(configFile);
  if (config.ok) return config.value;
  const problems = config.error.map((problem) => `  ${problem}`);
  giveUp(EXIT.unusable, [`Invalid configuration in ${configFile}:`, ...problems]);
}

function giveUp(code: number, lines: readonly string[]): never {
  for (const line of lines) printError(line);
  process.exit(code);
}

function endAtStart(log: Log): never {
  log.tell({ level: "info", event: "stopped", message: "Stopped during the start." });
  log.close();
  process.exit(0);
}
