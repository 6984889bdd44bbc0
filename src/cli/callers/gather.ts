/** Everything that may call this server, who answers for it, and when it last did. */
import type { Store, StoredClient } from "../../adapters/store/store.ts";
import { readEvent, type ShownEvent } from "../../audit/columns.ts";
import type { AuditPosition, Span } from "../../audit/query.ts";
import type { Term } from "../../audit/terms.ts";
import { readTrailPage } from "../../flows/read-trail.ts";
import { AUDIT_PAGE_MAX } from "../../limits/audit.ts";
import { clientsOf } from "../../policy/rules.ts";
import type { AuditQuery } from "../../records.ts";
import { defined } from "../../result.ts";
import { type AgentName, agentOf, inWords } from "../../settings/agents.ts";
import type { ClientSource } from "../../settings/authentication-methods.ts";
import type { Client, Settings } from "../../settings/settings.ts";
import { matchesPattern } from "../../spec/spiffe/id.ts";
import { turn } from "../audit/trail.ts";

/** Where a caller is known from; those in the plural stand for all under a prefix. */
type From =
  | ClientSource
  | "workload"
  | "workloads"
  | "metadata_documents"
  | "partner"
  | "trusted_issuer"
  /** Named in events alone. */
  | "trail";

/** `audience`: what the assertion named that proved the client; absent for another method. */
type LastUse = { timeMs: number; outcome: string; audience?: string };

export type ListedCaller = {
  id: string;
  from: From;
  /** Absent where no record says whether it may call. */
  state?: "in-force" | "expired" | "disabled";
  method?: string;
  registrationClass?: string;
  grantTypes?: readonly string[];
  workload?: string;
  defaultTarget?: string;
  createdAtSeconds?: number;
  /** Of the secrets that are still valid; infinite for one that does not end. */
  secretsEnd?: readonly number[];
  disabledAtSeconds?: number;
  /** What the operator says of it. */
  answers?: AgentName;
  /** What it says of itself. */
  claims?: { name?: string; contacts: readonly string[] };
  last?: LastUse;
};

/** The trail up to its end when the command began, not looked at before `sinceMs`; `eventsMax` are read, the newest. */
export type Look = { spans: readonly Span[]; sinceMs: number; nowSeconds: number; eventsMax: number };

/** `seen`: how many events were read for callers that nothing names, and the time of the oldest of them. */
type Gathered = { callers: readonly ListedCaller[]; seen: { events: number; fromMs: number } };

export async function gatherCallers(store: Store, settings: Settings, look: Look): Promise<Gathered> {
  const { uses, rest, ...seen } = await readNewest(store, look);
  const callers = new Map<string, ListedCaller>();
  const add = (caller: ListedCaller): void => {
    if (!callers.has(caller.id)) callers.set(caller.id, caller);
  };
  for (const client of settings.clients.values()) add(configured(client, look.nowSeconds));
  for (const client of await store.clients.list()) add(stored(client, look.nowSeconds));
  for (const id of namesIn(settings)) {
    const from = kindOf(id, settings);
    if (from !== undefined) add({ id, from });
  }
  for (const [id, { source }] of uses) add({ id, from: source });
  const found: ListedCaller[] = [];
  for (const caller of callers.values()) {
    const given = agentOf(settings.agents, caller.id);
    const last = isGroup(caller)
      ? newestUnder(caller.id, uses)
      : (uses.get(caller.id)?.last ?? (await lastUse(store, caller, look, rest)));
    found.push(defined<ListedCaller>({ ...caller, answers: given && inWords({ given }, ["en"]), last }));
  }
  return { callers: found.toSorted(byIdleness), seen };
}

/** The longest idle first. */
const byIdleness = (a: ListedCaller, b: ListedCaller): number =>
  (a.last?.timeMs ?? 0) - (b.last?.timeMs ?? 0) || (a.id < b.id ? -1 : 1);

// --- by record and by name ----------------------------------------------------------------------------------------

type Secrets = readonly { expiresAtSeconds?: number }[];

const endsOf = (secrets: Secrets, nowSeconds: number): readonly number[] =>
  secrets
    .map(({ expiresAtSeconds = Number.POSITIVE_INFINITY }) => expiresAtSeconds)
    .filter((end) => end > nowSeconds);

function configured({ clientId, source, auth, ...client }: Client, nowSeconds: number): ListedCaller {
  const { grantTypes, workload, defaultTarget } = client;
  const secrets = "secrets" in auth ? auth.secrets : undefined;
  const secretsEnd = secrets && endsOf(secrets, nowSeconds);
  const state = secretsEnd?.length === 0 ? "expired" : "in-force";
  const { method } = auth;
  const known = { id: clientId, from: source, method, grantTypes, workload, defaultTarget };
  return defined<ListedCaller>({ ...known, secretsEnd, state });
}

/** A client of a method without secrets does not expire. */
export function stored(client: StoredClient, nowSeconds: number): ListedCaller {
  const { clientId, source, secrets, claimedName, contacts = [], ...known } = client;
  const secretsEnd = endsOf(secrets, nowSeconds);
  let state: ListedCaller["state"] = "in-force";
  if (secretsEnd.length === 0 && known.method.startsWith("client_secret")) state = "expired";
  if (known.disabledAtSeconds !== undefined) state = "disabled";
  const { method, registrationClass, grantTypes, workload, defaultTarget } = known;
  const { createdAtSeconds, disabledAtSeconds } = known;
  return defined<ListedCaller>({
    id: clientId,
    from: source,
    state,
    method,
    registrationClass,
    grantTypes,
    workload,
    defaultTarget,
    createdAtSeconds,
    disabledAtSeconds,
    secretsEnd,
    claims: defined({ name: typeof claimedName === "string" ? claimedName : undefined, contacts }),
  });
}

/** Whom rules, targets, issuers and `agents` name. */
function* namesIn({ policy, trustedIssuers, agents }: Settings): Generator<string> {
  for (const rule of policy.rules.values()) yield* [...(rule.actors ?? []), ...(clientsOf(rule) ?? [])];
  for (const { owners, introspectors, partner } of policy.targets.values()) {
    yield* [...owners, ...introspectors, ...(partner === undefined ? [] : [partner.issuer])];
  }
  for (const [issuer, { grants }] of trustedIssuers) if (grants !== undefined) yield issuer;
  yield* agents.named.keys();
}

/** Undefined for a `client_id` that is of no client any more. */
function kindOf(id: string, { policy, trustedIssuers }: Settings): From | undefined {
  if (/^(?:spiffe|platform):/.test(id)) return id.endsWith("/*") ? "workloads" : "workload";
  if (policy.targets.get(id)?.partner !== undefined) return "partner";
  if (trustedIssuers.has(id)) return "trusted_issuer";
  if (!id.startsWith("https:")) return undefined;
  return id.endsWith("/*") ? "metadata_documents" : "metadata_document";
}

const isGroup = ({ from }: ListedCaller): boolean => from === "workloads" || from === "metadata_documents";

// --- by the trail -------------------------------------------------------------------------------------------------

type Uses = Map<string, { last: LastUse; source: From }>;

/** Pages at which a browser names a client, which proves nothing. */
const UNPROVEN = /^(?:authorization|user|consent)\./;

const isCall = ({ type, request, client }: ShownEvent): boolean =>
  request !== undefined && client !== undefined && !UNPROVEN.test(type);

/** The callers of the newest events, each with its last one; `rest`: behind which there are older ones. */
async function readNewest(
  { audit }: Store,
  { spans, sinceMs, eventsMax }: Look,
): Promise<Gathered["seen"] & { uses: Uses; rest?: AuditPosition | undefined }> {
  const uses: Uses = new Map();
  let after: AuditPosition | undefined;
  for (let events = 0; ; ) {
    const size = Math.min(AUDIT_PAGE_MAX, eventsMax - events);
    const query = { terms: [], spans, fromMs: sinceMs, newestFirst: true, after, limit: size };
    const page = await audit.find(defined<AuditQuery>(query));
    for (const { body, timeMs } of page) note(uses, readEvent(body), timeMs);
    events += page.length;
    if (page.length < size) return { uses, events, fromMs: sinceMs };
    after = page.at(-1);
    if (events >= eventsMax) return { uses, events, fromMs: after?.timeMs ?? sinceMs, rest: after };
  }
}

function note(uses: Uses, event: ShownEvent | undefined, timeMs: number): void {
  if (event?.client === undefined || !isCall(event)) return;
  const { client_id: id, workload, source } = event.client;
  const last = useOf(event, timeMs);
  const from = SOURCES.find((one) => one === source) ?? "trail";
  if (!uses.has(id)) uses.set(id, { last, source: workload === id ? "workload" : from });
  if (workload !== undefined && !uses.has(workload)) uses.set(workload, { last, source: "workload" });
}

const useOf = ({ outcome, client }: Pick<ShownEvent, "outcome" | "client">, timeMs: number): LastUse =>
  defined<LastUse>({ timeMs, outcome, audience: client?.aud });

const SOURCES = ["configuration", "operator", "registration", "metadata_document"] as const;

function newestUnder(pattern: string, uses: Uses): LastUse | undefined {
  const members = [...uses].filter(([id]) => matchesPattern(pattern, id)).map(([, { last }]) => last);
  return members.toSorted((a, b) => b.timeMs - a.timeMs)[0];
}

/** By the index, for a caller that the newest events do not have: a client is looked for among the rest alone. */
async function lastUse(
  { audit }: Store,
  caller: ListedCaller,
  { spans, sinceMs }: Look,
  rest: AuditPosition | undefined,
): Promise<LastUse | undefined> {
  const trace = traceOf(caller);
  if (trace === "client" && rest === undefined) return undefined;
  const { terms, isUse } = TRACES[trace](caller.id);
  const after = trace === "client" ? rest : undefined;
  const query = defined<AuditQuery>({ terms, spans, after, fromMs: sinceMs, newestFirst: true, limit: 1 });
  const holds = (body: string): boolean => {
    const event = readEvent(body);
    return event !== undefined && isUse(event);
  };
  // The newest one is mostly a use; only where it is not, more are read.
  const [newest] = await audit.find(query);
  if (newest === undefined) return undefined;
  const last = holds(newest.body) ? newest : (await readTrailPage({ audit, turn }, query, holds)).shown[0];
  return last && useOf(readEvent(last.body) ?? { outcome: "" }, last.timeMs);
}

type Trace = (id: string) => {
  terms: AuditQuery["terms"];
  isUse: (event: ShownEvent) => boolean;
};

const traceOf = ({ from }: ListedCaller): keyof typeof TRACES =>
  from === "partner" || from === "trusted_issuer" ? from : "client";

const term = (name: Term["name"], value: string): Term => ({ name, value });

/** By what an event shows that a client called, that a partner got a grant, that a grant of an issuer was redeemed. */
const TRACES = {
  client: (id) => ({
    terms: [[term("client", id), term("actor", id)]],
    isUse: (event) => isCall(event) && [event.client?.client_id, event.client?.workload].includes(id),
  }),
  partner: (id) => ({
    terms: [[term("target", id)]],
    isUse: ({ granted }) => granted?.aud === id,
  }),
  trusted_issuer: (id) => ({
    terms: [[term("type", "grant.redeemed")]],
    isUse: ({ subject }) => subject?.iss === id,
  }),
} satisfies Record<string, Trace>;
