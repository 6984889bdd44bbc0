/** A question in claims, as the order that the same request would make: without proof of the client, without signatures. */
import type { Reason, TokenReason } from "../../audit/reasons.ts";
import { MODES, type Mode } from "../../modes.ts";
import type { Subject } from "../../policy/access.ts";
import { boundsFrom } from "../../policy/jobs.ts";
import { modeOf, type Question } from "../../policy/question.ts";
import type { Ports } from "../../ports.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Client } from "../../settings/settings.ts";
import { checkTimes, stringClaim } from "../../spec/rfc7519.ts";
import { JWT_BEARER_GRANT } from "../../spec/rfc7523.ts";
import { readConfirmation } from "../../spec/rfc7800.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { resolveClient } from "../../spec/spiffe/client-auth.ts";
import { parseSpiffeId } from "../../spec/spiffe/id.ts";
import { isPlatformName, parsePlatformId } from "../../spec/workload-grant.ts";
import { checkAssociation, findClient } from "../find-client.ts";
import type { Failure } from "../refusal.ts";
import { checkOrigin, checkSubject } from "../still-covers.ts";
import { claimsTold } from "../subject-claims.ts";
import { grantIssuer, readGrant } from "./grant.ts";
import { checkGrantType } from "./grant-type.ts";
import type { Evidence, Order, Requested, RequestingClient, ResolvedSubject } from "./order.ts";
import { readOrder } from "./read-order.ts";
import {
  audienceList,
  detailsOf,
  mapSubject,
  type OwnSubject,
  readActors,
  readForeignSubject,
  readOwnSubject,
  scopesOf,
  subjectIssuer,
} from "./subject.ts";

type QuestionPorts = Pick<Ports, "clock" | "settings" | "clients" | "clientDocuments">;

type Refused = { reason: TokenReason };

export async function readQuestion(
  ports: QuestionPorts,
  question: Question,
): Promise<Result<Order, Failure>> {
  const { target, scope, details, issues: requestedType, resources = [] } = question;
  const mode = modeOf(question);
  const client = await findCaller(ports, mode, question);
  if (!client.ok) return client;
  // IDJAG-4.3-1: a request for an ID-JAG names the server by `audience`.
  if (requestedType === "id-jag" && target === undefined) {
    return err({ kind: "request_malformed", reason: "id_jag_audience_missing" });
  }
  const audience = target === undefined ? [] : [target];
  const requested = defined<Requested>({
    mode,
    audience,
    resource: resources,
    scope,
    details: details && JSON.stringify(details),
    requestedType,
  });
  // A question has no proofs, so the answer tells which are demanded.
  const asking = { ...client.value, keys: "assumed" } as const;
  const order = await readOrder(ports, asking, requested, claimed(ports, question));
  if (!order.ok) return err(order.error.failure);
  const { job: written } = question;
  if (written === undefined) return order;
  const job = { id: "", bounds: boundsFrom(written, ports.clock.nowSeconds()) };
  return ok({ ...order.value, access: { ...order.value.access, job } });
}

// --- the client -------------------------------------------------------------------------------------------------

type NamedClient = RequestingClient & { grantTypes?: readonly string[] };

/** The client of the question, where it may use the grant type of the mode. */
export async function findCaller(
  ports: QuestionPorts,
  mode: Mode,
  question: Question,
): Promise<Result<NamedClient, Failure>> {
  const client = await findNamedClient(ports, mode, question);
  if (!client.ok) return err({ kind: "client_refused", reason: client.error.reason });
  const grantType = checkGrantType(ports.settings(), client.value, {
    grant_type: client.value.forWorkload ? JWT_BEARER_GRANT : MODES[mode].grantType,
  });
  return grantType.ok ? client : grantType;
}

/** All questions share one budget for fetching metadata documents. */
const FETCH_BUDGET = "questions";

/** The client that authenticates by this `client_id`, with the workload that it would prove. */
async function findNamedClient(
  ports: QuestionPorts,
  mode: Mode,
  { client: clientId, workload }: Question,
): Promise<Result<NamedClient, { reason: Reason }>> {
  if (MODES[mode].brings === "code") return findClientOfPeople(ports, clientId);
  if (clientId.startsWith("spiffe://")) return findWorkload(ports, clientId, workload);
  if (isPlatformName(clientId)) {
    return workload === undefined || workload === clientId
      ? findPlatformWorkload(ports, clientId)
      : err({ reason: "workload_not_associated" });
  }
  const found = await findClient(ports, clientId, FETCH_BUDGET);
  if (!found.ok) return found;
  const client: Client = found.value;
  if (workload !== undefined && isPlatformName(workload)) {
    const brought = findPlatformWorkload(ports, workload, clientId);
    return brought.ok ? ok({ ...client, workload, forWorkload: true }) : brought;
  }
  if ("spiffeId" in client.auth) {
    const id = parseSpiffeId(workload ?? "");
    if (!id.ok) return err({ reason: "workload_not_associated" });
    const associated = checkAssociation(ports, client, id.value.id, id.value.trustDomain);
    return associated.ok ? ok({ ...client, workload: id.value.id }) : associated;
  }
  if (workload !== undefined && workload !== client.workload) {
    return err({ reason: "workload_not_associated" });
  }
  return ok(client);
}

/** A client of people is asked about without the workload that it could prove: the user consents to the client. */
async function findClientOfPeople(
  ports: QuestionPorts,
  clientId: string,
): Promise<Result<NamedClient, { reason: Reason }>> {
  const found = await findClient(ports, clientId, FETCH_BUDGET);
  if (!found.ok) return found;
  const { workload: _, ...client } = found.value;
  return ok(client);
}

function findWorkload(
  { settings }: QuestionPorts,
  clientId: string,
  workload = clientId,
): Result<NamedClient, { reason: Reason }> {
  const id = parseSpiffeId(workload);
  const domain = id.ok ? settings().trustDomains.get(id.value.trustDomain) : undefined;
  if (domain === undefined) return err({ reason: "client_unknown" });
  const resolved = resolveClient(workload, clientId, domain);
  return resolved.ok ? ok({ clientId: resolved.value, workload }) : err({ reason: resolved.error.kind });
}

/**
 * The workload as if its platform's token had proven it, itself or in the grant that a client brings: a question knows
 * its name, and none of its other claims.
 */
function findPlatformWorkload(
  { settings }: QuestionPorts,
  name: string,
  bringer?: string,
): Result<NamedClient, { reason: Reason }> {
  const { issuer: iss, platforms } = settings();
  const registration = platforms.get(parsePlatformId(name)?.registration ?? "");
  if (registration === undefined || !checkOrigin(settings(), { iss, sub: name }).ok) {
    return err({ reason: "client_unknown" });
  }
  const { uses, clients } = registration;
  // PLAT-D-10: a registration with clients takes its grants from these alone.
  if (clients !== undefined && bringer === undefined) return err({ reason: "workload_client_missing" });
  if (clients?.includes(bringer ?? "") === false) return err({ reason: "workload_client_differs" });
  // PLAT-D-1
  const isUsed = uses.includes("grant") || (bringer === undefined && uses.includes("client"));
  return isUsed ? ok({ clientId: name, workload: name }) : err({ reason: "workload_use_refused" });
}

// --- the parties ------------------------------------------------------------------------------------------------

/** Makes from the claims of the question what the tokens would say. */
function claimed(ports: QuestionPorts, question: Question): Evidence {
  const { subjectClaims, grantClaims, grantProfile = "jwt", signedIn, actor, client } = question;
  const { issuer: us } = ports.settings();
  if (grantClaims !== undefined) {
    return { subject: () => readClaimedGrant(ports, grantClaims, grantProfile, client) };
  }
  if (signedIn !== undefined) return { subject: () => readSignedIn(ports, signedIn, question) };
  if (subjectClaims === undefined) return {};
  const { iss } = subjectClaims;
  return defined<Evidence>({
    subject: async () =>
      iss === us
        ? readClaimedOwn(ports, subjectClaims, question)
        : readClaimedForeign(ports, subjectClaims, question),
    actor: actor === undefined ? undefined : async () => ok({ sub: actor }),
  });
}

/** Makes what the code of this user would stand for: all that the client asks them for, as if they gave it. */
async function readSignedIn(
  ports: QuestionPorts,
  { iss, sub: foreign, claims }: NonNullable<Question["signedIn"]>,
  { target = "", scope }: Question,
): Promise<Result<ResolvedSubject, Refused>> {
  const { trustedIssuers, signIn, policy } = ports.settings();
  const issuer = trustedIssuers.get(iss);
  const isProvider = [...(signIn?.providers.values() ?? [])].some((one) => one.issuer === iss);
  if (issuer === undefined || !isProvider) return err({ reason: "issuer_unknown" });
  const mapped = await mapSubject(ports, issuer, foreign, { sub: foreign });
  if (!mapped.ok) return mapped;
  const { sub, origin } = mapped.value;
  const trusted = checkOrigin(ports.settings(), origin);
  if (!trusted.ok) return err({ reason: trusted.error });
  const forPeople = [...policy.targets.values()].filter(({ people }) => people);
  const named = policy.targets.get(target)?.scopes ?? forPeople.flatMap(({ scopes }) => scopes);
  const nowSeconds = ports.clock.nowSeconds();
  return ok({
    sub,
    subject: defined<Subject>({
      tokenType: "code",
      origin,
      audiences: [],
      scopes: scope?.split(" ") ?? [...new Set(named)],
      expiresAtSeconds: nowSeconds,
      chain: [],
      issuer: iss,
      claims: claimsTold(ports.settings(), iss, claims, nowSeconds),
    }),
  });
}

async function readClaimedGrant(
  ports: QuestionPorts,
  claims: JsonObject,
  profile: NonNullable<Question["grantProfile"]>,
  clientId: string,
): Promise<Result<ResolvedSubject, Refused>> {
  const name = stringClaim(claims, "iss");
  if (!name.ok) return err({ reason: name.error.kind });
  // IDJAG-9.4-1, PROD-4.1v9-4: a grant that we issued is never redeemed here.
  if (name.value === ports.settings().issuer) return err({ reason: "grant_self_issued" });
  const issuer = grantIssuer(ports, { issuer: name.value, profile });
  return issuer.ok ? readGrant(ports, issuer.value, profile, claims, clientId) : issuer;
}

async function readClaimedForeign(
  ports: QuestionPorts,
  claims: JsonObject,
  { origin, issues: requestedType, subjectTokenType, client: clientId }: Question,
): Promise<Result<ResolvedSubject, Refused>> {
  const named = typeof claims.iss === "string" ? ports.settings().trustedIssuers.get(claims.iss) : undefined;
  const { acceptAs = [] } = named ?? {};
  const tokenType = subjectTokenType ?? (acceptAs.includes("jwt") ? "jwt" : (acceptAs[0] ?? "jwt"));
  const { policy } = ports.settings();
  // PCL-D-8: what a question does not date is true now.
  const dated = policy.claims.has(String(claims.iss)) ? { iat: ports.clock.nowSeconds(), ...claims } : claims;
  const token = { claims: dated, tokenType, clientId, requestedType };
  const issuer = subjectIssuer(ports, token);
  if (!issuer.ok) return issuer;
  if (origin !== undefined && (origin.iss !== claims.iss || origin.sub !== claims.sub)) {
    return err({ reason: "origin_differs" });
  }
  return readForeignSubject(ports, issuer.value, token);
}

/** Makes what the row of such a token would say; the chain is what `act` tells of it. */
function readClaimedOwn(
  ports: QuestionPorts,
  claims: JsonObject,
  question: Question,
): Result<ResolvedSubject, Refused> {
  const { issuer, clockSkewSeconds: skewSeconds } = ports.settings();
  const nowSeconds = ports.clock.nowSeconds();
  const times = checkTimes(claims, { nowSeconds, skewSeconds, expSkewSeconds: 0 });
  if (!times.ok) return err({ reason: times.error.kind });
  const sub = stringClaim(claims, "sub");
  if (!sub.ok) return err({ reason: sub.error.kind });
  const scopes = scopesOf(claims, []);
  if (!scopes.ok) return scopes;
  const details = detailsOf(claims, [...ports.settings().policy.details.keys()]);
  if (!details.ok) return details;
  const actors = readActors(claims, issuer, issuer);
  if (!actors.ok) return actors;
  // Without an origin, the subject is a client of ours.
  const { iss, sub: theirs } = question.origin ?? { iss: issuer, sub: sub.value };
  const origin = { iss, sub: theirs };
  const trusted = checkSubject(ports.settings(), origin, sub.value);
  if (!trusted.ok) return err({ reason: trusted.error });
  return readOwnSubject(
    issuer,
    defined<OwnSubject>({
      sub: sub.value,
      origin,
      audiences: audienceList(claims),
      scopes: scopes.value,
      details: details.value,
      expiresAtSeconds: Math.floor(times.value.exp),
      boundTo: readConfirmation(claims),
      claims: claimsTold(ports.settings(), origin.iss, question.origin?.claims, nowSeconds),
      ...actors.value,
    }),
  );
}
