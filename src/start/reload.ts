/**
 * New settings while the server runs. SIGHUP reads the configuration and all files that it names again; the files alone are
 * looked at every few seconds. Either is taken as one step or not at all.
 */
import { type Config, loadConfig } from "../config/config.ts";
import { ConfigFile } from "../config/schema.ts";
import { digestsOf, type FileDigests, isSame } from "../config/watched.ts";
import { FILES_LOOK_MS } from "../limits/process.ts";
import { defined, type Result } from "../result.ts";
import { membersOf } from "../setting.ts";
import type { Settings } from "../settings/settings.ts";
import type { InForce } from "./in-force.ts";
import type { Listeners } from "./listeners.ts";
import type { Log } from "./log.ts";
import type { Service } from "./service.ts";

type ReloadOptions = {
  configFile: string;
  /** The settings of the start. */
  started: Config["fixed"];
  inForce: InForce;
  service: Pick<Service, "ports" | "timers" | "prepare" | "apply">;
  opened: Pick<Listeners, "renew">;
  log: Log;
};

type Reload = {
  /**
   * The problems, each a line that begins with its path; with one of them nothing changes: no setting, no certificate.
   */
  fromFile(): void;
  /** Stops watching the files. */
  stop(): void;
};

export function makeReload({ configFile, started, inForce, service, opened, log }: ReloadOptions): Reload {
  const { ports, timers } = service;
  /** The files as they were at the last look, and those of which a problem was told. */
  let seen: FileDigests = inForce.current.files;
  let told: FileDigests | undefined;

  function refuse(problems: readonly string[]): void {
    inForce.refuse(true);
    tellRefused(log, problems, ports.settings());
  }

  function take(next: Config, what: string): void {
    const { fixed, settings } = next;
    tellWarnings(log, next);
    tellRestarts(log, started, fixed);
    opened.renew(fixed);
    // The published addresses of listeners are those of the start, because only a restart opens or ends listeners.
    const { mtlsOrigin, takesCertificates } = ports.settings();
    service.apply(defined<Settings>({ ...settings, mtlsOrigin, takesCertificates }));
    inForce.take(next);
    const { digest: policy } = settings.policy;
    log.tell({ level: "info", event: "reloaded", message: `reloaded: ${what}`, policy });
  }

  /** The files with the configuration that is in force: what was edited in it since waits for SIGHUP. */
  function look(): void {
    inForce.tellEnds(log);
    const { current } = inForce;
    const now = digestsOf(current.files.keys());
    const before = seen;
    seen = now;
    if (isSame(now, current.files)) {
      if (told !== undefined) inForce.refuse(false);
      told = undefined;
      return;
    }
    const next = current.reread();
    const problems = problemsOf(next, ports.settings().issuer, started.profile);
    if (next.ok && problems.length === 0) {
      take(next.value, `files that ${configFile} names`);
    } else if (isSame(now, before) && (told === undefined || !isSame(now, told))) {
      // A renewal writes one file after the other, so what does not fit is told once it has stayed.
      refuse(problems);
      told = now;
    }
  }

  async function read(): Promise<void> {
    const next = loadConfig(configFile);
    const problems = problemsOf(next, ports.settings().issuer, started.profile);
    if (!next.ok || problems.length > 0) return refuse(problems);
    try {
      await service.prepare(next.value.settings);
    } catch (fault) {
      return refuse([`signIn: its files cannot be loaded any more (${fault}): restart the server`]);
    }
    take(next.value, configFile);
  }

  const stop = timers.every(FILES_LOOK_MS, look);
  let last = Promise.resolve();
  return {
    fromFile() {
      // Reloads run one after the other, so that what was read first is not taken last.
      last = last.then(read);
    },
    stop,
  };
}

function problemsOf(
  next: Result<Config, readonly string[]>,
  issuer: string,
  profile: Config["fixed"]["profile"],
): readonly string[] {
  if (!next.ok) return next.error;
  const problems: string[] = [];
  if (next.value.settings.issuer !== issuer) {
    problems.push("issuer: cannot change while the server runs; restart it");
  }
  // The file was read by the rules of its profile, and those of development accept what production refuses.
  if (next.value.fixed.profile !== profile) {
    problems.push("profile: cannot change while the server runs; restart it");
  }
  return problems;
}

function tellRefused(log: Log, problems: readonly string[], { policy: { digest: policy } }: Settings): void {
  for (const problem of problems)
    log.tell({ level: "warning", event: "reload_refused", message: `not reloaded: ${problem}`, policy });
}

function tellRestarts(log: Log, started: Config["fixed"], next: Config["fixed"]): void {
  const tell = (setting: string, message: string): void =>
    log.tell({ level: "warning", event: "restart_needed", message, setting });
  for (const path of changedSettings(started, next)) tell(path, `${path} changed: restart to use it`);
  if (next.signsIn === started.signsIn) return;
  tell(
    "signIn",
    "signIn is in force as it is now: restart as well, because only a start decides whether listen asks for certificates",
  );
}

export const tellWarnings = (log: Log, { warnings }: Pick<Config, "warnings">): void => {
  for (const message of warnings) log.tell({ level: "warning", event: "config_warning", message });
};

type Fixed = Config["fixed"];

/** Their members in the schema say so; they stand at the same paths in Config["fixed"]. */
const OF_START = new Set(membersOf(ConfigFile).flatMap(({ path, ofStart }) => (ofStart ? [path] : [])));

/** The parts of a database URL besides its server. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  "store.postgres": ["store.socketFolder", "store.hosts", "store.tls"],
};

/** Settings are compared by value; a section that came or went is named by each of its members. */
export function changedSettings(inForce: Fixed, next: Fixed): readonly string[] {
  const differs = (path: string): boolean =>
    JSON.stringify(valueAt(inForce, path)) !== JSON.stringify(valueAt(next, path));
  return [...OF_START].filter((path) => [path, ...(BESIDE[path] ?? [])].some(differs));
}

const valueAt = (from: unknown, path: string): unknown =>
  path.split(".").reduce((value, name) => Object(value)[name], from);
