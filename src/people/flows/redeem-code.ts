/** RFC 6749 4.1.3: an authorization code, once and by its own client, for an access token of the user who allowed it. */

import { describeRequest } from "../../flows/audit-fields.ts";
import { type EndingPorts, endTokens } from "../../flows/endings.ts";
import { codeIssuerOf } from "../../flows/jobs.ts";
import type {
  FamilyStep,
  Order,
  Refused,
  Requested,
  RequestingClient,
  ResolvedSubject,
} from "../../flows/order/order.ts";
import { readOrder } from "../../flows/order/read-order.ts";
import { jktOf } from "../../flows/prove-keys.ts";
import type { AuditedRequest, Failure, RefusedRequest } from "../../flows/refusal.ts";
import { checkSubject } from "../../flows/still-covers.ts";
import { keysOfClaims } from "../../flows/subject-claims.ts";
import { type Known, refuseRequest, type TokenRequest } from "../../flows/token-request.ts";
import { CODE_SECONDS } from "../../limits/people.ts";
import type { Allowed, Origin, Subject } from "../../policy/access.ts";
import { type EndingKey, grantKeys, selectorKey } from "../../policy/endings.ts";
import { jobKey } from "../../policy/jobs.ts";
import type { BasePorts } from "../../ports.ts";
import type { Family, Guard } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { canWait } from "../../spec/deferred-token-response.ts";
import type { SignInFacts } from "../../spec/oidc-user.ts";
import { buildRefreshToken } from "../../spec/rfc6749.ts";
import { requestedTarget } from "../../spec/rfc8707.ts";
import type { PeoplePorts } from "../ports.ts";
import type { CodeRecord } from "../records.ts";
import { isVerifier } from "../spec/rfc7636.ts";
import { inForce } from "./judge-refresh.ts";
import { comesWithRefresh } from "./offer.ts";
import { askProvider, type RecheckPorts, refuseLapsed, type Vouched } from "./recheck.ts";
import { endSurplus } from "./surplus-families.ts";

const MODE = { mode: "authorization_code" } as const;

type CodePorts = RecheckPorts & Pick<PeoplePorts, "facts" | "families" | "shortLived">;

export async function readCode(
  ports: CodePorts,
  request: TokenRequest,
): Promise<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  const known = { ...MODE, requested: describeRequest(form) };
  const { code } = form;
  // RFC6749-4.1.3-1
  if (code === undefined) {
    return refuseRequest(request, { kind: "request_malformed", reason: "code_missing" }, known);
  }
  const key = ports.hash.sha256(code);
  const row = await ports.shortLived.find("code", key, ports.clock.nowSeconds());
  // RFC6749-4.1.3-5, RFC6749-10.5-3: another client's code stays as it was, so that none can be spoiled from outside.
  if (row === undefined || row.body.clientId !== client.clientId) {
    return refuseRequest(request, { kind: "grant_refused", reason: "code_unknown" }, known);
  }
  // RFC7636-4.6-1, RFC9700-4.2.4-3: the code is used up by the first attempt of its client, so that no verifier is
  // tried twice.
  const spends = guardOf(ports, key, row.expiresAtSeconds);
  const refuse = (refused: { ok: false; error: RefusedRequest }) => err({ ...refused.error, spends });
  const failure = checkRequest(ports, request, row.body);
  if (failure !== undefined) return refuse(refuseRequest(request, failure, known));
  const stands = await askAbout(ports, request, key, row.body, known);
  if (!stands.ok) return stands.error.failure.kind === "provider_unreachable" ? stands : refuse(stands);
  const subject = (): Promise<Result<ResolvedSubject, Refused>> =>
    Promise.resolve(subjectOf(ports, key, row.body, spends));
  const { target, scopes } = row.body;
  const wanted = defined<Requested>({
    ...MODE,
    audience: [target],
    resource: [],
    scope: scopes.join(" "),
    // RFC9396-6.1-2: the token may have less than the user gave, and the family keeps all of it.
    details: form.authorization_details,
  });
  const order = await readOrder(ports, plainClient(client), wanted, { subject });
  const grant = {
    id: grantOf(ports, key),
    step: (allowed: Allowed) => startOf(ports, client, key, row.body, allowed),
    begun: () => endSurplus(ports, request.request, row.body),
  };
  if (order.ok) {
    return ok({ ...order.value, user: { jti: tokenOf(ports, key), consentId: row.body.consentId, grant } });
  }
  const { failure: why, parties } = order.error;
  return refuse(refuseRequest(request, why, { ...known, ...parties }));
}

/**
 * RECHECK-D-9: a session lives for an hour, in which its user may go. Where the provider cannot be asked, or wants the user,
 * that hour is the bound; where it is silent, the code stays good.
 */
async function askAbout(
  ports: CodePorts,
  request: TokenRequest,
  key: string,
  { origin, signedInAtSeconds }: CodeRecord,
  about: Known,
): Promise<Result<undefined, RefusedRequest>> {
  const { signIn } = ports.settings();
  if (signIn === undefined) return ok(undefined);
  const user: Vouched = {
    origin,
    recheck: await ports.rechecks.find(origin),
    sinceSeconds: signedInAtSeconds,
    unaskedSeconds: Number.POSITIVE_INFINITY,
    known: { ...about, ...describeCode(key, origin), grant: { id: grantOf(ports, key) } },
  };
  const stands = await askProvider(ports, signIn, request.request, user);
  if (stands.ok || stands.error.failure.reason === "provider_wants_user") return ok(undefined);
  return refuseLapsed(ports, request, user, stands.error);
}

const describeCode = (key: string, origin: Origin): Required<Pick<Known, "subject">> => ({
  subject: { ...origin, kind: "user", token: { type: "code", fingerprint: key } },
});

const guardOf = ({ settings }: Pick<PeoplePorts, "settings">, key: string, expiresAtSeconds: number) =>
  ({
    kind: "code_fresh",
    issuer: codeIssuerOf(settings().issuer),
    jti: key,
    expiresAtSeconds,
  }) satisfies Guard;

/**
 * The `jti` of the token that a code gives is derived from the code, so that a second use finds it; the code has 256
 * random bits, and cannot be found from the `jti`.
 */
const tokenOf = ({ hash }: Pick<PeoplePorts, "hash">, key: string): string =>
  hash.sha256(JSON.stringify(["token of code", key])).slice(0, 22);

/** Whether the code has given a token. */
export const isRedeemed = async (
  ports: Pick<PeoplePorts, "hash" | "facts">,
  code: string,
): Promise<boolean> => (await ports.facts.token(tokenOf(ports, ports.hash.sha256(code)))) !== undefined;

/** The id of what the user gave with this code, for as long as anything comes of it; it is found by the code alone. */
const grantOf = ({ hash }: Pick<PeoplePorts, "hash">, key: string): string =>
  hash.sha256(JSON.stringify(["grant of code", key])).slice(0, 22);

/** The consent names the client and not its workload: it is no actor before it exchanges what it gets here. */
export const plainClient = ({
  clientId,
  registrationClass,
  scopes,
  detailTypes,
  bindsBy,
  keys,
}: TokenRequest["client"]): RequestingClient =>
  defined<RequestingClient>({ clientId, registrationClass, scopes, detailTypes, bindsBy, keys });

/** What the token request has to repeat of the authorization request (RFC6749-4.1.3-6, RFC6749-10.6-1). */
function checkRequest(
  { settings, clock, hash }: BasePorts,
  { client, form }: TokenRequest,
  code: CodeRecord,
): Failure | undefined {
  // RFC6749-4.1.2-1
  if (clock.nowSeconds() >= code.usableUntilSeconds) return { kind: "grant_refused", reason: "code_expired" };
  // RFC6749-4.1.3-7, RFC9700-4.5.3-1: the URI must be the one that was used, byte for byte, with its port.
  const { redirect_uri: redirectUri, code_verifier: verifier } = form;
  if (redirectUri === undefined ? code.redirectUriSent : redirectUri !== code.redirectUri) {
    return { kind: "grant_refused", reason: "code_redirect_uri_differs" };
  }
  // RFC9700-2.1.1-4, RFC7636-4.5-1: every code has a challenge, and the method is that of the code.
  if (verifier === undefined) return { kind: "request_malformed", reason: "code_verifier_missing" };
  // RFC7636-4.2-2: the method is S256.
  if (!isVerifier(verifier) || !hash.equal(hash.sha256(verifier), code.challenge)) {
    return { kind: "grant_refused", reason: "code_verifier_wrong" };
  }
  // RFC9449-10-1, RFC9449-10.1-1: the code is of use only to the holder of the key.
  if (code.jkt !== undefined && code.jkt !== jktOf(client.keys)) {
    return { kind: "grant_refused", reason: "code_key_not_proven" };
  }
  // DTR-5.2-2: what the client said at the authorization endpoint alone does not count.
  if (code.canWait && !canWait(form)) return { kind: "request_malformed", reason: "completion_mode_missing" };
  // MCPC-D-13: the target was fixed at the authorization endpoint; here it is left out or the same.
  const { policy } = settings();
  const named = requestedTarget(form.resource, [], policy);
  if (!named.ok) return { kind: "target_refused", reason: named.error.kind };
  const differs =
    named.value !== undefined && policy.targets.get(named.value) !== policy.targets.get(code.target);
  return differs ? { kind: "target_refused", reason: "code_target_differs" } : undefined;
}

function subjectOf(
  ports: BasePorts,
  key: string,
  code: CodeRecord,
  spends: Guard,
): Result<ResolvedSubject, Refused> {
  const { settings, clock } = ports;
  const { origin, sub, scopes, details, authTimeSeconds, acr } = code;
  const parties = describeCode(key, origin);
  const signIn = defined<SignInFacts>({ authTimeSeconds, acr });
  const known = checkSubject(settings(), origin, sub);
  if (!known.ok) return err({ reason: known.error, parties });
  return ok(
    defined<ResolvedSubject>({
      sub,
      subject: defined<Subject>({
        tokenType: "code",
        origin,
        audiences: [],
        scopes,
        details,
        expiresAtSeconds: clock.nowSeconds(),
        chain: [],
        issuer: origin.iss,
        signIn,
      }),
      root: { keys: keysOf(ports, key, code) },
      job: code.jobId === undefined ? undefined : { id: code.jobId },
      signIn,
      spends,
      parties,
    }),
  );
}

function keysOf(
  { hash, settings }: Pick<PeoplePorts, "hash" | "settings">,
  key: string,
  code: CodeRecord,
): readonly EndingKey[] {
  const { jobId } = code;
  return grantKeys(
    hash.sha256,
    defined<Parameters<typeof grantKeys>[1]>({
      ...code,
      id: grantOf({ hash }, key),
      startedAtSeconds: code.usableUntilSeconds - CODE_SECONDS,
      jobKey: jobId === undefined ? undefined : jobKey(hash.sha256, settings().issuer, jobId),
    }),
  );
}

/** REFRESH-D-1: a refresh token, where client, rule and page allow it; RFC9700-4.14.2-1: that is the operator's decision. */
function startOf(
  ports: BasePorts,
  client: TokenRequest["client"],
  key: string,
  code: CodeRecord,
  allowed: Allowed,
): FamilyStep | undefined {
  const { clientId, method, grantTypes = [] } = client;
  const { refresh, origin, sub, target, scopes, details, consentId, authTimeSeconds, acr } = code;
  if (refresh === undefined || !comesWithRefresh({ grantTypes }, allowed)) return undefined;
  const { hash, random, clock } = ports;
  const refreshSettings = ports.settings().signIn?.refresh;
  const gives = buildRefreshToken(random.secret());
  const rule = selectorKey(hash.sha256, { by: "rule", id: allowed.rule.id });
  const rotates = method === "none";
  const start = defined<Family>({
    ...refresh,
    id: grantOf(ports, key),
    clientId,
    // REFRESH-D-3, OAUTH21-4.3.1-1: the family of a client that proves itself is bound by that.
    rotates,
    origin,
    sub,
    target,
    scopes,
    details,
    consentId,
    jobId: code.jobId,
    // RFC9449-5-5, RFC9449-5-9, REFRESH-D-18
    jkt: rotates ? jktOf(client.keys) : undefined,
    authTimeSeconds,
    acr,
    usedAtSeconds: clock.nowSeconds(),
    generation: 1,
    endingKeys: [
      ...keysOf(ports, key, code),
      { key: rule, sinceMs: refresh.startedAtSeconds * 1000 },
      // PCL-D-9: what the user gave as a member of a group ends with that.
      ...keysOfClaims(hash.sha256, origin, allowed.rule, code.signedInAtSeconds),
    ],
  });
  const family = { start, digest: hash.sha256(gives) };
  const ends = refreshSettings === undefined ? start : inForce(start, refreshSettings);
  return { type: "refresh.issued", generation: 1, family, ends, gives };
}

/** RFC6749-4.1.2-4, RFC6749-10.5-4, RFC9700-4.2.4-4: a code that comes twice was stolen, so what it gave ends. */
export async function endReplayed(
  ports: EndingPorts & Pick<PeoplePorts, "journal">,
  request: AuditedRequest,
  code: Guard,
): Promise<void> {
  if (code.kind !== "code_fresh") return;
  const { jti: key } = code;
  const given = await ports.facts.token(tokenOf(ports, key));
  if (given === undefined) return;
  const id = grantOf(ports, key);
  const own = selectorKey(ports.hash.sha256, { by: "grant", id });
  // What the code gave has ended already, and is not ended twice.
  if (await ports.endings.isEnded([{ key: own, sinceMs: 0 }])) return;
  await endTokens(ports, { by: "grant", id }, { reason: "code_replayed", request, grant: { id } });
}
