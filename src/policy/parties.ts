/** What a configuration tells of the parties that its rules name: whether there can be such a caller or subject. */
import { CLIENT_ID_PREFIX } from "../spec/rfc7591.ts";
import { matchesPattern, prefixesOver } from "../spec/spiffe/id.ts";
import { isPlatformName } from "../spec/workload-grant.ts";

type ByName<T> = { readonly [name: string]: T };

/** The trust domains, issuers and clients of the same configuration. */
export type ConfiguredParties = {
  trustDomains: ByName<unknown>;
  trustedIssuers: ByName<{
    acceptAs?: readonly string[] | undefined;
    subjects?: "keep" | { prefix: string } | { table: ByName<string> } | undefined;
    /** The registrations of its workloads. */
    workloads?: ByName<{ clients?: readonly string[] | undefined }>;
    /** What says which groups and other claims its subjects have. */
    claimsFrom?: readonly string[] | undefined;
    /** The types of `authorization_details` that are taken from its tokens. */
    details?: readonly string[] | undefined;
    /** If present, the issuer's JWT authorization grants are redeemed here. */
    grants?: unknown;
  }>;
  /** The providers at which users sign in. */
  signIn?: { providers: ByName<{ issuer: string }> } | undefined;
  clients: ByName<{
    grantTypes?: readonly string[];
    workload?: string | undefined;
    spiffeId?: string;
    defaultTarget?: string | undefined;
  }>;
  /** Absent if it is on, as by default. */
  dpop?: { algorithms: readonly string[] };
};

/** The same clients with an index, so that the check of one rule does not slow down with more clients. */
export type IndexedParties = ConfiguredParties & { workloads: ReadonlySet<string> };

/** Finds the entry of this name; an inherited property such as `toString` is no entry. */
export const member = <T>(from: ByName<T>, name: string): T | undefined =>
  Object.hasOwn(from, name) ? from[name] : undefined;

/** PROD-2.6-3: a workload proves itself within a configured trust domain, or a client has it as its `workload`. */
export function isActor(
  pattern: string,
  { trustDomains, trustedIssuers, workloads }: IndexedParties,
): boolean {
  const [, , trustDomain = ""] = pattern.split("/");
  if (isPlatformName(pattern)) {
    return Object.values(trustedIssuers).some(
      (one) => member(one.workloads ?? {}, trustDomain) !== undefined,
    );
  }
  return Object.hasOwn(trustDomains, trustDomain) || workloads.has(pattern);
}

/** Lists the workloads of all clients, and the prefixes over them. */
export function workloadsOf({ clients }: ConfiguredParties): ReadonlySet<string> {
  const ids = Object.values(clients).flatMap(({ workload }) => workload ?? []);
  return new Set([...ids, ...ids.flatMap(prefixesOver)]);
}

/** Whether some platform says of a workload that it works beside a client. */
export const vouchesForClients = ({ trustedIssuers }: ConfiguredParties): boolean =>
  Object.values(trustedIssuers).some(({ workloads = {} }) =>
    Object.values(workloads).some(({ clients = [] }) => clients.length > 0),
  );

/** PROD-2.1-2: SPIFFE IDs and URLs are client_ids without configuration, and the server makes those with its prefix. */
export function isClient(name: string, parties: IndexedParties): boolean {
  if (name.startsWith("spiffe://") || isPlatformName(name)) return isActor(name, parties);
  return name.includes("://") || name.startsWith(CLIENT_ID_PREFIX) || Object.hasOwn(parties.clients, name);
}

/** Whether its subjects can appear here: in its own tokens, or in ours for which its grants were redeemed. */
export function hasSubjects(issuer: string, own: string, parties: IndexedParties): boolean {
  const { acceptAs, workloads = {} } = member(parties.trustedIssuers, issuer) ?? { acceptAs: [] };
  const tokens = acceptAs ?? (Object.keys(workloads).length > 0 ? [] : ["jwt"]);
  return issuer === own || tokens.length > 0 || hasGrants(issuer, parties);
}

export const signsIn = (issuer: string, { signIn }: IndexedParties): boolean =>
  Object.values(signIn?.providers ?? {}).some((one) => one.issuer === issuer);

export const hasGrants = (issuer: string, { trustedIssuers }: IndexedParties): boolean =>
  member(trustedIssuers, issuer)?.grants !== undefined;

/** Whether this client can have a workload that matches; true for clients that are not in the configuration file. */
export function canBe(client: string, actor: string, { clients }: IndexedParties): boolean {
  if (client.startsWith("spiffe://") || isPlatformName(client)) return matchesPattern(actor, client);
  // PLAT-D-10: any client may bring the grant of such a workload.
  if (isPlatformName(actor)) return true;
  const configured = member(clients, client);
  if (configured === undefined) return true;
  const { workload, spiffeId } = configured;
  if (workload !== undefined) return matchesPattern(actor, workload);
  return spiffeId !== undefined && overlap(actor, spiffeId);
}

export function canHave(
  issuer: ConfiguredParties["trustedIssuers"][string] | undefined,
  sub: string,
): boolean {
  const { subjects = { table: {} } } = issuer ?? { subjects: "keep" };
  return subjects === "keep" || "prefix" in subjects || Object.hasOwn(subjects.table, sub);
}

/** Whether a workload can match both: two prefixes overlap only if one contains the other. */
const overlap = (a: string, b: string): boolean => matchesPattern(a, b) || matchesPattern(b, a);
