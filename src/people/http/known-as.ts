/** How pages name a party, a user and a target: by what a user may rely on, never by what a party says of itself alone. */
import type { FieldForm } from "../../policy/details.ts";
import type { PolicySet, SubjectRule, Target } from "../../policy/rules.ts";
import type { Worded } from "../../policy/worded.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { Agents } from "../../settings/agents.ts";
import { namingOf } from "../../settings/agents.ts";
import type { Client } from "../../settings/settings.ts";
import { zoneNamed } from "../../settings/time-zone.ts";
import { isDocumentUrl } from "../../spec/cimd.ts";
import type { Detail, DetailValue } from "../../spec/rfc9396.ts";

import type { DetailView } from "../pages/detail-sentences.ts";
import type { PermissionView, ShownTarget, ShownUser } from "../pages/display-names.ts";
import type { ShownParty } from "../pages/parties.ts";
import type { Session } from "../records.ts";
import { hostOf } from "./page-answers.ts";

/** A party that this server authenticated, by its id, and what its record says if it has one. */
export function shownParty(
  agents: Agents,
  id: string,
  { registeredAtSeconds, claimedName }: Partial<Pick<Client, "registeredAtSeconds" | "claimedName">> = {},
): ShownParty {
  // CIMD-8.5-2: a client with a document is known by its host, also where the operator pinned the document.
  const known = isDocumentUrl(id) ? { id: hostOf(id), isHost: true } : { id };
  return defined<ShownParty>({ ...known, registeredAtSeconds, naming: namingOf(agents, id, claimedName) });
}

/** A party of which another server tells: nothing that is known of the same id here is said of it. */
export const toldParty = (agents: Agents, id: string, issuer: string): ShownParty => ({
  id,
  toldBy: defined<ShownParty>({ id: issuer, naming: namingOf(agents, issuer) }),
});

export const shownUser = ({ origin, mail, displayName }: Session): ShownUser =>
  defined<ShownUser>({ id: mail ?? origin.sub, name: displayName });

/** PAGE-D-30: a page without script does not know the zone of its browser, so it is that of the account, or the operator's. */
export const zoneOf = ({ settings }: BasePorts, { zone }: Session): string | undefined =>
  zoneNamed(zone ?? "") ?? settings().pages.timeZone;

/** A target is named by the operator's title for it and the host of the name that was asked for. */
export const shownTarget = (target: Target | undefined, name: string): ShownTarget =>
  defined<ShownTarget>({
    title: target?.title ?? name,
    host: /^https:/.test(name) ? hostOf(name) : undefined,
  });

/** RAR-D-9: objects in the operator's words; of a type that the target does not declare any more, as they are. */
export const shownDetails = (
  target: Target | undefined,
  details: readonly Detail[] = [],
): readonly DetailView[] =>
  details.map((one) => {
    const type = target?.details.get(one.type);
    const fields = Object.entries(one)
      .filter(([name]) => name !== "type")
      .map(([name, value]) => {
        const field = type?.fields.get(name);
        return { label: field?.label ?? name, value: shownValue(field?.is, value) };
      });
    return { title: type?.title ?? one.type, fields };
  });

function shownValue(is: FieldForm | undefined, value: DetailValue): DetailView["fields"][number]["value"] {
  if (typeof value === "boolean" || typeof value === "object") return value;
  return is === "seconds" ? { atSeconds: Number(value) } : [String(value)];
}

/** The operator's words for what a client with this scope may do. */
export const sentenceOf = (target: Target | undefined, scope: string): Worded =>
  new Map(Object.entries(target?.sentences ?? {})).get(scope) ?? scope;

/** The scopes that the target knows, in the operator's words; of a target that is no more, all as they are. */
export function permissionView(
  target: Target | undefined,
  name: string,
  scopes: readonly string[],
): PermissionView {
  const known = scopes.filter((scope) => target?.scopes.includes(scope) ?? true);
  const sentences = known.map((scope) => sentenceOf(target, scope));
  return { target: shownTarget(target, name), sentences };
}

/** What these rules allow, each target once. */
export function permissionsBy(
  { targets }: Pick<PolicySet, "targets">,
  rules: readonly Pick<SubjectRule, "targets" | "scopes">[],
): readonly PermissionView[] {
  const scopesAt = new Map<string, Set<string>>();
  for (const { targets: names, scopes } of rules)
    for (const name of names) {
      const at = scopesAt.getOrInsertComputed(targets.get(name)?.names[0] ?? name, () => new Set());
      for (const scope of scopes) at.add(scope);
    }
  return [...scopesAt].map(([name, scopes]) => permissionView(targets.get(name), name, [...scopes]));
}
