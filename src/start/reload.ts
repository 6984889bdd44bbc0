/** SIGHUP: the configuration file and all files that it names are read again, and taken as one step or not at all. */
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/config.ts";
import { defined } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import { changedSettings } from "./changed-settings.ts";
import type { Listeners } from "./listeners.ts";
import type { Log } from "./log.ts";
import type { Service } from "./service.ts";

export type ReloadOptions = {
  configFile: string;
  /** The settings of the start. */
  inForce: Config["fixed"];
  service: Service;
  opened: Listeners;
  log: Log;
};

/** Each problem is a line that begins with its path, and with one nothing changes: no setting, no certificate. */
export function makeReload({ configFile, inForce, service, opened, log }: ReloadOptions): () => void {
  return () => {
    const next = loadConfig(configFile);
    const old = service.ports.settings();
    const problems = next.ok ? [] : [...next.error];
    if (next.ok && next.value.settings.issuer !== old.issuer) {
      problems.push("issuer: cannot change while the server runs; restart it");
    }
    // The file was read by the rules of its profile, and those of development accept what production refuses.
    if (next.ok && next.value.fixed.profile !== inForce.profile) {
      problems.push("profile: cannot change while the server runs; restart it");
    }
    for (const problem of problems) {
      const message = `not reloaded: ${problem}`;
      log.tell({ level: "warning", event: "reload_refused", message, policy: old.policy.digest });
    }
    if (!next.ok || problems.length > 0) return;
    const { fixed, settings } = next.value;
    tellWarnings(log, next.value);
    for (const path of changedSettings(inForce, fixed)) {
      const message = `${path} changed: restart to use it`;
      log.tell({ level: "warning", event: "restart_needed", message, setting: path });
    }
    opened.renew(fixed);
    // The origin of a listener is published with the listener, which a restart alone opens or ends.
    service.apply(defined<Settings>({ ...settings, mtlsOrigin: old.mtlsOrigin }));
    const policy = settings.policy.digest;
    log.tell({ level: "info", event: "reloaded", message: `reloaded: ${configFile}`, policy });
  };
}

export const tellWarnings = (log: Log, { warnings }: Pick<Config, "warnings">): void => {
  for (const message of warnings) log.tell({ level: "warning", event: "config_warning", message });
};
