/** `mandate check`: reads everything as `serve` would, looks at what lies outside, and says what to do. */
import { clock } from "../adapters/clock.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { EXIT } from "../limits/process.ts";
import type { Result } from "../result.ts";
import { subjectFormats } from "../spec/ssf.ts";
import { certificatesOf } from "./check/certificates.ts";
import { datesOf } from "./check/dates.ts";
import { type Finding, LABELS } from "./check/finding.ts";
import { placesOf, providersOf, sourcesOf, storeOf } from "./check/outside.ts";
import { portsOf } from "./check/ports.ts";
import { proxyOf } from "./check/proxy.ts";
import { receiversOf } from "./check/receivers.ts";
import { type Command, onFiles, type Terminal } from "./command.ts";
import { flagsFor, lackingHere, touchedBy } from "./flags.ts";
import { type CommandArguments, configOf } from "./options.ts";
import { jsonLine } from "./text.ts";

export const checkCommand = (given: CommandArguments): Result<Command, string> =>
  onFiles((terminal) => check(terminal, configOf(given), given.has("json")));

async function check(terminal: Terminal, configFile: string, json: boolean): Promise<number> {
  const config = loadConfig(configFile);
  const findings = config.ok ? await look(configFile, config.value) : config.error.map(problem);
  for (const one of findings) terminal.print(json ? jsonLine(one) : escapeUnsafe(line(one)));
  if (!json) terminal.print(sumUp(configFile, findings));
  if (!config.ok) return EXIT.unusable;
  if (findings.some(({ level }) => level === "error")) return EXIT.refused;
  return findings.some(({ level }) => level === "unreachable") ? EXIT.unavailable : EXIT.done;
}

async function look(configFile: string, config: Config): Promise<readonly Finding[]> {
  const flags = flagsOf(configFile, config);
  if (flags.level === "error") return [flags];
  const [store, ports, ...outside] = await Promise.all([
    storeOf(config),
    portsOf(config),
    sourcesOf(config.settings),
    providersOf(config.settings),
    receiversOf(config),
  ]);
  const warnings = config.warnings.map((text): Finding => ({ ...problem(text), level: "warning" }));
  return [
    ...warnings,
    flags,
    ...datesOf(config, clock.nowSeconds()),
    ...certificatesOf(config),
    ...proxyOf(config),
    ...workloadsOf(config),
    ...signalsOf(config),
    ...store,
    ...outside.flat(),
    ...placesOf(config),
    ...ports,
  ];
}

/** Under the flags of a unit, whether they are enough; what they keep from this process would look as if it were not there. */
function flagsOf(configFile: string, config: Config): Finding {
  const where = "--permission";
  const touched = touchedBy(configFile, config);
  const lacking = lackingHere(touched);
  if (lacking.length > 0) {
    const says = `the flags of this process are not enough for this configuration: add ${lacking.join(" ")}`;
    return { level: "error", where, says };
  }
  return {
    level: "ok",
    where,
    says: `a server with this configuration needs ${flagsFor(touched).join(" ")}`,
  };
}

/** FEDC-D-7: how often a platform's token is accepted decides which clients can bring it. */
const workloadsOf = ({ settings }: Config): readonly Finding[] =>
  [...settings.platforms.values()].map(({ issuer, name, reusable, maxAgeSeconds }) => ({
    level: "ok",
    where: `trustedIssuers.${issuer}.workloads.${name}`,
    says: reusable
      ? `a token is accepted again until it is ${maxAgeSeconds} seconds old`
      : "each token is accepted once; clients that send one token file again, as those of clouds do, need reusable",
  }));

/** PCL-D-16: the subjects of events that are taken of each issuer, and those that are refused. */
const signalsOf = ({ settings }: Config): readonly Finding[] =>
  [...settings.trustedIssuers.values()].flatMap(({ issuer, signals }): readonly Finding[] => {
    if (signals === undefined) return [];
    const { email, unverifiedEmail } = signals;
    const formats = subjectFormats({ byEmail: email !== undefined });
    const named = (taken: boolean): string =>
      formats.flatMap(({ name, isTaken }) => (isTaken === taken ? [name] : [])).join(", ");
    const which = unverifiedEmail ? email : `${email}, if verified`;
    const of = email === undefined ? "" : ` (email: of users whose latest token here had it in ${which})`;
    const says = `formats of subjects that are taken: ${named(true)}${of}; that are not: ${named(false)}`;
    return [{ level: "ok", where: `trustedIssuers.${issuer}.signals`, says }];
  });

/** A text of the configuration's reader begins with its path. */
function problem(text: string): Finding {
  const at = text.indexOf(": ");
  return { level: "error", where: text.slice(0, at), says: text.slice(at + 2) };
}

const line = ({ level, where, says }: Finding): string => `${LABELS[level].padEnd(12)}${where}: ${says}`;

function sumUp(configFile: string, findings: readonly Finding[]): string {
  const count = (label: string): number => findings.filter(({ level }) => LABELS[level] === label).length;
  const [errors, warnings, unseen] = ["error", "warning", "not checked"].map(count);
  return `${configFile}: errors ${errors}, warnings ${warnings}, not checked ${unseen}.`;
}
