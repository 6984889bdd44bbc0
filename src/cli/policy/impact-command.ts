/** `mandate policy impact`: reads what would be removed, and prints whom that would hurt. */

import { escapeUnsafe } from "../../audit/safe-text.ts";
import { byUse, subjectIn, type Uses } from "../../audit/uses.ts";
import { type Preview, previewEnding } from "../../flows/endings.ts";
import { EXIT } from "../../limits/process.ts";
import { meant } from "../../policy/nearest.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { Command } from "../command.ts";
import type { CommandArguments } from "../options.ts";
import { agentText, endedText, jsonLine, time, titlesOf, word } from "../text.ts";
import { endingPortsOf } from "../tokens.ts";
import { type Impact, impactOf, type Removed } from "./impact.ts";
import { type OverTrail, overTrail, type Period, readPeriod, recordedOptions } from "./over-trail.ts";
import { targetNamed } from "./show-replay.ts";

const SINCE = "30d";
const FORMATS = ["text", "json"];
const SELECTORS = ["without-rule", "without-client", "without-domain", "disable"];

export function impactCommand(given: CommandArguments, nowMs: number): Result<Command, string> {
  const format = given.one("format") ?? "text";
  if (!FORMATS.includes(format)) return err(`--format is not one of ${FORMATS.join(", ")}`);
  const period = readPeriod(given, nowMs, SINCE);
  if (!period.ok) return period;
  const removed = readRemoved(given);
  if (!removed.ok) return removed;
  const look = { command: "policy impact", ...recordedOptions(given, [...SELECTORS, "issuer", "since"]) };
  return overTrail(given, look, (on) => run(on, removed.value, period.value, format === "json"));
}

function readRemoved(given: CommandArguments): Result<Removed, string> {
  const [id, clientId, name, sub] = SELECTORS.map(given.one);
  const iss = given.one("issuer");
  const chosen = [id, clientId, name, sub].filter((one) => one !== undefined);
  if (chosen.length !== 1) return err(`give exactly one of --${SELECTORS.join(", --")}`);
  if ((sub === undefined) !== (iss === undefined)) return err("--disable and --issuer require each other");
  if (id !== undefined) return ok({ by: "rule", id });
  if (clientId !== undefined) return ok({ by: "client", clientId });
  if (name !== undefined) return ok({ by: "trust_domain", name });
  return ok({ by: "subject", iss: iss ?? "", sub: sub ?? "" });
}

/** IMPACT-D-3: that no one is hurt is no answer about what nothing names. */
function unknownIn({ policy, clients, trustDomains, trustedIssuers, issuer }: Settings, removed: Removed) {
  switch (removed.by) {
    case "rule":
      return policy.rules.has(removed.id)
        ? undefined
        : `"${removed.id}" is no rule${meant(removed.id, policy.rules.keys())}`;
    case "client":
      return clients.has(removed.clientId)
        ? undefined
        : `no event and no entry of the configuration names the client "${removed.clientId}"${meant(removed.clientId, clients.keys())}`;
    case "trust_domain":
      return trustDomains.has(removed.name)
        ? undefined
        : `"${removed.name}" is no trust domain${meant(removed.name, trustDomains.keys())}`;
    case "subject":
      return removed.iss === issuer || trustedIssuers.has(removed.iss)
        ? `no event names the subject "${removed.sub}"`
        : `"${removed.iss}" is no trusted issuer${meant(removed.iss, trustedIssuers.keys())}`;
  }
}

async function run(
  { settings, source, admin, print, printError }: OverTrail,
  removed: Removed,
  period: Period,
  json: boolean,
): Promise<number> {
  const unknown = unknownIn(settings, removed);
  const refuse = (text: string): number => {
    printError(text);
    return EXIT.unusable;
  };
  if (unknown !== undefined && removed.by === "rule") return refuse(unknown);
  const impact = await impactOf(removed, settings.policy, source, period);
  if (unknown !== undefined && impact.named === 0) return refuse(unknown);
  const living = admin && (await previewEnding(endingPortsOf(admin), removed, { limit: 0 }));
  if (json) print(jsonLine(showImpact(impact, settings, living)));
  else for (const line of formatImpact(impact, removed, settings, living)) print(escapeUnsafe(line));
  return impact.hurt > 0 || (living?.count ?? 0) > 0 ? EXIT.refused : EXIT.done;
}

// --- for people ---------------------------------------------------------------------------------------------------

/** The most used, of which the others are told by number. */
const LISTED = 20;

const WITHOUT: Record<Removed["by"], string> = {
  rule: "Without the rule",
  client: "Without the client",
  trust_domain: "Without the trust domain",
  subject: "With the subject disabled",
};

const nameOf = (removed: Removed): string => {
  switch (removed.by) {
    case "rule":
      return word(removed.id);
    case "client":
      return word(removed.clientId);
    case "trust_domain":
      return word(removed.name);
    case "subject":
      return `${word(removed.sub)} of ${word(removed.iss)}`;
  }
};

function formatImpact(
  impact: Impact,
  removed: Removed,
  settings: Settings,
  living: Preview | undefined,
): readonly string[] {
  const { events, hurt, downstream, agents, subjects, targets, less, same, already, apart } = impact;
  const titles = titlesOf(settings);
  const told: readonly [number, string][] = [
    [downstream, "of them would only lack the token that they presented"],
    [less, "would be allowed less, by another rule"],
    [same, "would be allowed by another rule"],
    [already, "are refused by the policy in force as it is"],
  ];
  return [
    `${WITHOUT[removed.by]} ${nameOf(removed)}, ${hurt} requests would be refused: of ${sizeOf(agents)} agents, for ${sizeOf(subjects)} subjects, at ${sizeOf(targets)} targets (${events} events were read).`,
    ...told.flatMap(([number, text]) => (number === 0 ? [] : [`  ${number} ${text}`])),
    ...[...apart].map(([why, number]) => `  ${number} were not decided again, ${why}`),
    ...usesLines("Agents", agents, (id) => agentText(id, titles)),
    ...usesLines("Targets", targets, (name) => targetNamed(settings, name)),
    ...usesLines("Subjects", subjects, (name) => {
      const { iss, sub } = subjectIn(name);
      return `${word(sub)} of ${word(iss)}`;
    }),
    ...(living === undefined
      ? []
      : [
          `${living.more ? "At least " : ""}${living.count} living tokens would end: ${endedText({ ...removed })}.`,
        ]),
  ];
}

const sizeOf = ({ by, others }: Uses): string => `${others > 0 ? "more than " : ""}${by.size}`;

function usesLines(title: string, uses: Uses, shown: (name: string) => string): readonly string[] {
  const all = byUse(uses);
  const more = all.length - LISTED;
  return [
    ...(all.length > 0 ? [`${title}:`] : []),
    ...all.slice(0, LISTED).map(([name, use]) => `  ${shown(name)}: ${use.count}, last ${time(use.lastMs)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

// --- for programs -------------------------------------------------------------------------------------------------

function showImpact(impact: Impact, settings: Settings, living: Preview | undefined): JsonObject {
  const { agents, subjects, targets, apart, ...counts } = impact;
  const titles = titlesOf(settings);
  const shown = (uses: Uses, of: (name: string) => JsonObject): JsonObject[] =>
    byUse(uses).map(([name, { count, lastMs }]) => ({ ...of(name), count, last: time(lastMs) }));
  return defined<JsonObject>({
    ...counts,
    apart: Object.fromEntries(apart),
    agents: shown(agents, (agent) => defined<JsonObject>({ agent, title: titles(agent) })),
    subjects: shown(subjects, subjectIn),
    targets: shown(targets, (target) => ({ target })),
    living_tokens: living?.count,
    living_tokens_more: living?.more,
  });
}
