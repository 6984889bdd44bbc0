/** SIGHUP: the configuration file is read again, and its settings are taken as one step or not at all. */
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/config.ts";
import type { Log } from "./log.ts";
import type { Service } from "./service.ts";

export type ReloadOptions = { configFile: string; service: Service; log: Log };

/** Each problem is a line that begins with its path, and with one nothing changes. */
export function makeReload({ configFile, service, log }: ReloadOptions): () => void {
  return () => {
    const next = loadConfig(configFile);
    const { issuer } = service.ports.settings();
    const problems = next.ok ? [] : [...next.error];
    if (next.ok && next.value.settings.issuer !== issuer) {
      problems.push("issuer: cannot change while the server runs; restart it");
    }
    for (const problem of problems) {
      log.tell({ level: "warning", event: "reload_refused", message: `not reloaded: ${problem}` });
    }
    if (!next.ok || problems.length > 0) return;
    tellWarnings(log, next.value);
    service.apply(next.value.settings);
    log.tell({ level: "info", event: "reloaded", message: `reloaded: ${configFile}` });
  };
}

export const tellWarnings = (log: Log, { warnings }: Pick<Config, "warnings">): void => {
  for (const message of warnings) log.tell({ level: "warning", event: "config_warning", message });
};
