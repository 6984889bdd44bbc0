/** How pages name a party, a user and a target: by what a user may rely on, never by what a party says of itself alone. */
import type { DetailField, Narrowing } from "../../policy/details.ts";
import type { PolicySet, Target } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import { type Agents, namingOf } from "../../settings/agents.ts";
import type { Client } from "../../settings/settings.ts";
import { zoneNamed } from "../../settings/time-zone.ts";
import { isDocumentUrl } from "../../spec/cimd.ts";
import type { Detail, DetailValue } from "../../spec/rfc9396.ts";

import type { DetailView, ShownAmount } from "../pages/detail-sentences.ts";
import type { PermissionView, ShownTarget, ShownUser } from "../pages/display-names.ts";
import type { ShownParty } from "../pages/parties.ts";
import { type PermissionsAt, permissionsIn } from "../policy/permissions.ts";
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
    // PAGE-D-47
    id: target?.sharesTitle ? name : undefined,
    host: /^https:/.test(name) ? hostOf(name) : undefined,
  });

/** RAR-D-9: an object in the operator's words; of a type that the target does not declare any more, as it is. */
export function shownDetail(target: Target | undefined, one: Detail): DetailView {
  const type = target?.details.get(one.type);
  // A unit is told with its amount, and not once more.
  const units = new Set(
    [...(type?.fields ?? [])].flatMap(([name, { unit }]) =>
      unit !== undefined && one[name] !== undefined && typeof one[unit] === "string" ? [unit] : [],
    ),
  );
  const fields = Object.entries(one)
    .filter(([name]) => name !== "type" && !units.has(name))
    .map(([name, value]) => {
      const field = type?.fields.get(name);
      return { label: field?.label ?? name, value: shownValue(one, field, value) };
    });
  return { title: type?.title ?? one.type, fields };
}

function shownValue(
  one: Detail,
  field: DetailField | undefined,
  value: DetailValue,
): DetailView["fields"][number]["value"] {
  if (typeof value === "boolean" || typeof value === "object") return value;
  if (field?.is === "seconds") return { atSeconds: Number(value) };
  if (field?.is !== "integer" && field?.is !== "decimal") return [String(value)];
  const unit = field.unit === undefined ? undefined : one[field.unit];
  return defined<ShownAmount>({
    amount: String(value),
    unit: typeof unit === "string" ? unit : undefined,
    // The operator's label says which bound it is; the name of a field does not.
    bound: field.label === undefined ? BOUNDS.get(field.narrows) : undefined,
  });
}

const BOUNDS = new Map<Narrowing, NonNullable<ShownAmount["bound"]>>([
  ["max", "max"],
  ["min", "min"],
]);

/** What is allowed at a target, in the operator's words. */
export const permissionView = ({ target, name, permissions }: PermissionsAt): PermissionView => ({
  target: shownTarget(target, name),
  sentences: permissions.map(({ sentence }) => sentence),
});

/** What is on record of former times: at a target that is no more, the scopes as they are. */
export function recordedView(
  policy: Pick<PolicySet, "targets">,
  name: string,
  scopes: readonly string[],
): PermissionView {
  const [known] = permissionsIn(policy, { targets: [name], scopes });
  const target = policy.targets.get(name);
  return known === undefined
    ? { target: shownTarget(target, name), sentences: target === undefined ? scopes : [] }
    : permissionView(known);
}
