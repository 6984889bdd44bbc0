/**
 * The policy explains itself: the question of a token request in claims instead of tokens, answered by the same
 * reading of claims, the same stored consents and the same decision as at the token endpoint. Nothing is issued.
 */
import type { Allowed, Ask, Denied, Fallen, Subject, Trace } from "../policy/ask.ts";
import { decide } from "../policy/decide.ts";
import { tellTrace } from "../policy/explanation.ts";
import type { Question } from "../policy/question.ts";
import { modeOf } from "../policy/question.ts";
import type { Mode } from "../policy/rules.ts";
import { GRANT_TYPES } from "../policy/rules.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Client } from "../settings/settings.ts";
import { checkAssertionAudience } from "../spec/id-jag.ts";
import { parseScope } from "../spec/rfc6749.ts";
import { checkTimes, stringClaim } from "../spec/rfc7519.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { requestedTarget } from "../spec/rfc8707.ts";
import { resolveClient } from "../spec/spiffe/client-auth.ts";
import { parseSpiffeId } from "../spec/spiffe/id.ts";
import type { ReadGrant } from "./ask/grant.ts";
import { checkGrantClaims, grantIssuer, readGrant } from "./ask/grant.ts";
import {
  audienceList,
  checkOwnSubject,
  findIssuer,
  readActors,
  readForeignClaims,
  scopesOf,
} from "./ask/subject.ts";
import { buildToken } from "./build-token.ts";
import { asUnauthorized } from "./client-credentials.ts";
import { checkAssociation, findClient } from "./find-client.ts";
import { askingAs, consentsFor } from "./issue.ts";
import { aimOf, asGrantRefused } from "./redeem-grant.ts";
import type { Failure } from "./refusal.ts";
import { checkOrigin } from "./verify-own-token.ts";

export type ExplainPorts = Pick<
  Ports,
  "clock" | "settings" | "clients" | "clientDocuments" | "facts" | "random"
>;

export type Explanation = {
  mode: Mode;
  /** Of the rules and targets that were asked. */
  digest: string;
  /** What the token endpoint would answer; absent: a token. */
  failure?: Failure;
  /** Every rule that names this caller for this, with the first condition it failed. */
  trace: Trace;
  /** Each scope that was asked for, with the side of the intersection where it fell; of the rule that decided. */
  scopes: readonly { scope: string; fell?: Fallen["at"] }[];
  issued?: Issued;
};

export type Issued = { rule: string; consent?: string; claims: JsonObject };

export async function explain(ports: ExplainPorts, question: Question): Promise<Explanation> {
  const mode = modeOf(question);
  const { issuer, policy } = ports.settings();
  const deny = (failure: Failure, trace: Trace = []): Explanation => ({
    ...{ mode, digest: policy.digest, failure, trace },
    scopes: fallenEverywhere(trace),
  });
  const read = await readAsk(ports, mode, question);
  if (!read.ok) return deny(read.error);
  const { ask } = read.value;
  const nowSeconds = ports.clock.nowSeconds();
  const consents = await consentsFor(ports, ask, nowSeconds);
  const decided = decide(policy, { ...ask, consents, nowSeconds });
  if (!decided.ok) return deny(failureOf(question, decided.error), decided.error.trace);
  const { rule, consent, trace } = decided.value;
  // A `jti` of the length that a real one has, for the size; there is no token with it.
  const built = buildToken(issuer, read.value, decided.value, nowSeconds, ports.random.id());
  if (!built.ok) return deny(failureOf(question, { kind: "policy_denied", ...built.error }), trace);
  const { jti: _, ...claims } = built.value.claims;
  return {
    ...{ mode, digest: policy.digest, trace },
    scopes: scopesBy(decided.value),
    issued: { rule: rule.id, ...(consent !== undefined && { consent: consent.id }), claims },
  };
}

function failureOf(question: Question, { kind, reason }: Pick<Denied, "kind"> & { reason: string }): Failure {
  switch (modeOf(question)) {
    case "client_credentials":
      return asUnauthorized({ kind, reason });
    case "redemption":
      return asGrantRefused(
        { kind, reason },
        question.target === undefined && question.grantClaims?.resource !== undefined,
      );
    default:
      return { kind, reason };
  }
}

function scopesBy({ rule, scope, trace }: Allowed): Explanation["scopes"] {
  const fallen = trace.find((one) => one.rule === rule.id)?.fallen ?? [];
  return [
    ...scope.map((one) => ({ scope: one })),
    ...fallen.map((one) => ({ scope: one.scope, fell: one.at })),
  ];
}

/** Where no rule left anything of the scope, each of them says why; the first one that came that far is shown. */
function fallenEverywhere(trace: Trace): Explanation["scopes"] {
  const fallen = trace.find((one) => one.failed === "scope")?.fallen ?? [];
  return fallen.map(({ scope, at }) => ({ scope, fell: at }));
}

// --- from claims to the value that the token endpoint builds ----------------------------------------------------

type Read = {
  ask: Omit<Ask, "consents" | "nowSeconds">;
  sub: string;
  chain: Chain;
  subjectClaims?: JsonObject;
};

/** In the order of the token endpoint, so that the first refusal is the same. */
async function readAsk(ports: ExplainPorts, mode: Mode, question: Question): Promise<Result<Read, Failure>> {
  const { issuer, policy } = ports.settings();
  const client = await findCaller(ports, question);
  if (!client.ok) return err({ kind: "client_refused", reason: client.error.reason });
  const { clientId, grantTypes, workload, defaultTarget } = client.value;
  if (grantTypes !== undefined && !grantTypes.includes(GRANT_TYPES[mode])) {
    return err({ kind: "client_unauthorized", reason: "grant_type_not_registered" });
  }
  const named = question.target === undefined ? [] : [question.target];
  const target = requestedTarget([], named, policy);
  if (!target.ok) return err({ kind: "target_refused", reason: target.error.kind });
  const scope = question.scope === undefined ? undefined : parseScope(question.scope);
  if (scope?.ok === false) return err({ kind: "scope_refused", reason: scope.error.kind });
  const asks = (aim: string | undefined) => ({
    mode,
    ...askingAs(client.value),
    ...(aim !== undefined && { target: aim }),
    ...(scope !== undefined && { scope: scope.value }),
  });
  const { subjectClaims, grantClaims, actor, issues, resources } = question;
  if (grantClaims !== undefined) {
    const read = await readGrantClaims(ports, grantClaims, clientId, question.grantProfile ?? "jwt");
    if (!read.ok) return err({ kind: "grant_refused", reason: read.error.reason });
    const { sub, subject } = read.value;
    const aim = aimOf(read.value, target.value, defaultTarget, policy);
    if (!aim.ok) return err({ kind: "grant_refused", reason: aim.error.reason });
    return ok({ ask: { ...asks(aim.value), subject }, sub, chain: subject.chain });
  }
  if (subjectClaims === undefined) {
    return ok({ ask: asks(target.value ?? defaultTarget), sub: clientId, chain: [] });
  }
  const read = await readSubject(ports, subjectClaims, question, clientId);
  if (!read.ok) return err({ kind: "token_refused", reason: `subject_${read.error.reason}` });
  const { sub, subject } = read.value;
  if (actor !== undefined && actor !== workload) {
    return err({ kind: "token_refused", reason: "actor_not_the_caller" });
  }
  const chain = actor === undefined ? [] : [{ iss: issuer, sub: actor }, ...subject.chain];
  const wish = {
    ...(issues !== undefined && { requestedType: issues }),
    ...(resources !== undefined && { resources }),
  };
  // Of a token of ours nothing is carried over: its claims say what its row says.
  const foreign = subject.tokenType === "access_token" ? {} : { subjectClaims };
  return ok({ ask: { ...asks(target.value), ...wish, subject }, sub, chain, ...foreign });
}

type Caller = Pick<Client, "clientId" | "workload" | "defaultTarget" | "scopes" | "registrationClass"> & {
  grantTypes?: readonly string[];
};
type Refused = { reason: string };

/** On whose account a metadata document is fetched: of all who ask questions together. */
const NO_SOURCE = "questions";

/** Who this would be, had he proven himself. */
async function findCaller(
  ports: ExplainPorts,
  { client: clientId, workload }: Question,
): Promise<Result<Caller, Refused>> {
  if (clientId.startsWith("spiffe://")) return findWorkload(ports, clientId, workload);
  const found = await findClient(ports, clientId, NO_SOURCE);
  if (!found.ok) return found;
  const client = found.value;
  if ("spiffeId" in client.auth) {
    const id = parseSpiffeId(workload ?? "");
    if (!id.ok) return err({ reason: "workload_not_associated" });
    const associated = checkAssociation(ports, client, id.value.id, id.value.trustDomain);
    return associated.ok ? ok({ ...client, workload: id.value.id }) : associated;
  }
  if (workload !== undefined && workload !== client.workload)
    return err({ reason: "workload_not_associated" });
  return ok(client);
}

function findWorkload(ports: ExplainPorts, clientId: string, workload = clientId): Result<Caller, Refused> {
  const id = parseSpiffeId(workload);
  const domain = id.ok ? ports.settings().trustDomains.get(id.value.trustDomain) : undefined;
  if (domain === undefined) return err({ reason: "client_unknown" });
  const resolved = resolveClient(workload, clientId, domain);
  return resolved.ok ? ok({ clientId: resolved.value, workload }) : err({ reason: resolved.error.kind });
}

async function readSubject(
  ports: ExplainPorts,
  claims: JsonObject,
  { origin, issues, subjectTokenType }: Question,
  clientId: string,
): Promise<Result<{ sub: string; subject: Subject }, Refused>> {
  const { issuer } = ports.settings();
  if (claims.iss === issuer) return readOwnClaims(ports, claims, origin);
  const found = findIssuer(ports, claims);
  if (!found.ok) return found;
  const { acceptAs, audiences } = found.value;
  const as = subjectTokenType ?? (acceptAs.includes("jwt") ? "jwt" : "id_token");
  if (!acceptAs.includes(as)) return err({ reason: "issuer_not_accepted_as_type" });
  if (origin !== undefined && (origin.iss !== claims.iss || origin.sub !== claims.sub)) {
    return err({ reason: "origin_differs" });
  }
  // RFC8693-2.1-20: an ID token was made for the client that its user signed in at.
  if (as === "jwt") return readForeignClaims(ports, found.value, claims, as);
  const own = issues === "id-jag" ? checkAssertionAudience(claims, clientId) : ok(undefined);
  if (!own.ok) return err({ reason: own.error.kind });
  return readForeignClaims(ports, { ...found.value, audiences: [...audiences, clientId] }, claims, as);
}

/** As at the token endpoint, but for type and signature. */
async function readGrantClaims(
  ports: ExplainPorts,
  claims: JsonObject,
  clientId: string,
  profile: NonNullable<Question["grantProfile"]>,
): Promise<Result<ReadGrant, Refused>> {
  const name = stringClaim(claims, "iss");
  if (!name.ok) return err({ reason: name.error.kind });
  const issuer = grantIssuer(ports, name.value, profile);
  if (!issuer.ok) return issuer;
  const checked = checkGrantClaims(ports, issuer.value, { claims }, clientId, profile);
  return checked.ok ? readGrant(ports, issuer.value, checked.value.grant, claims) : checked;
}

/** What the row of such a token would say; of the chain, what `act` tells. */
function readOwnClaims(
  ports: ExplainPorts,
  claims: JsonObject,
  origin: Question["origin"],
): Result<{ sub: string; subject: Subject }, Refused> {
  const { issuer, skewSeconds } = ports.settings();
  const nowSeconds = ports.clock.nowSeconds();
  const times = checkTimes(claims, { nowSeconds, skewSeconds, expSkewSeconds: 0 });
  if (!times.ok) return err({ reason: times.error.kind });
  const sub = stringClaim(claims, "sub");
  if (!sub.ok) return err({ reason: sub.error.kind });
  const scopes = scopesOf(claims, []);
  if (!scopes.ok) return scopes;
  const actors = readActors(claims, issuer);
  if (!actors.ok) return actors;
  // Without another word, the subject is one of ours: a client for itself.
  const from = origin ?? { iss: issuer, sub: sub.value };
  const trusted = checkOrigin(ports, from);
  if (!trusted.ok) return trusted;
  const subject = checkOwnSubject(issuer, {
    origin: from,
    audiences: audienceList(claims),
    scopes: scopes.value,
    expiresAtSeconds: Math.floor(times.value.exp),
    issuer,
    tokenType: "access_token",
    ...actors.value,
  });
  return subject.ok ? ok({ sub: sub.value, subject: subject.value }) : subject;
}

// --- in words ---------------------------------------------------------------------------------------------------

/** The rules in words, then the decision. */
export function tellExplanation({ trace, failure, issued }: Explanation): readonly string[] {
  const decision =
    issued === undefined
      ? `Denied: ${failure?.reason ?? "no_rule"}.`
      : `Allowed by rule ${issued.rule}, with scope ${String(issued.claims.scope)}.`;
  return [...tellTrace(trace), decision];
}

/** What the audit trail keeps of it. */
export function describeExplanation(question: Question, { mode, failure, issued }: Explanation): JsonObject {
  const { client, target, scope, actor, origin, subjectClaims, grantClaims } = question;
  const claims = subjectClaims ?? grantClaims;
  return {
    ...{ mode, client, decision: issued === undefined ? "deny" : "allow" },
    ...(failure !== undefined && { reason: failure.reason }),
    ...(issued !== undefined && { rule_id: issued.rule }),
    ...(target !== undefined && { target }),
    ...(scope !== undefined && { scope }),
    ...(actor !== undefined && { actor }),
    ...(typeof claims?.iss === "string" && { iss: origin?.iss ?? claims.iss }),
    ...(typeof claims?.sub === "string" && { sub: origin?.sub ?? claims.sub }),
  };
}
