/** What the audit trail says of a client, of its request and of the tokens in it. */
import type { AuditEvent, AuditedToken } from "../audit/event.ts";
import { beginningOf } from "../audit/safe-text.ts";
import { REASON_CHARS_MAX } from "../limits/input.ts";
import type { Subject } from "../policy/access.ts";
import type { DetailTypes } from "../policy/details.ts";
import type { Ports } from "../ports.ts";
import type { Family } from "../records.ts";
import { sparse } from "../result.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { readConfirmation } from "../spec/rfc7800.ts";
import type { Detail } from "../spec/rfc9396.ts";
import type { Authenticated } from "./authenticate-client.ts";
import type { Parties, RequestingClient } from "./order/order.ts";
import { audienceList } from "./order/subject.ts";
import { jktOf } from "./prove-keys.ts";

// Members stand in order of their names, so that the event has none to sort.

export function describeClient({
  clientId,
  method,
  source,
  workload,
  platform,
  proof,
  keys,
}: Authenticated & RequestingClient): NonNullable<AuditEvent["client"]> {
  return sparse<NonNullable<AuditEvent["client"]>>({
    aud: proof?.aud,
    auth_method: method,
    client_id: clientId,
    jkt: jktOf(keys),
    jti: proof?.jti,
    kid: proof?.kid,
    platform: platform && describePlatform(platform),
    source,
    typ: proof?.typ,
    workload,
    x5t: proof?.x5t,
  });
}

const describePlatform = ({
  registration: { name: registration },
  origin: { iss, sub },
  matched: claims,
  fingerprint,
  ignoredClientId: ignored_client_id,
}: NonNullable<RequestingClient["platform"]>) =>
  sparse<NonNullable<AuditEvent["client"]>["platform"] & object>({
    claims,
    fingerprint,
    ignored_client_id,
    iss,
    registration,
    sub,
  });

export function describeRequest(form: Form): NonNullable<AuditEvent["requested"]> {
  return sparse<NonNullable<AuditEvent["requested"]>>({
    audience: form.audience,
    reason: reasonIn(form),
    requested_token_type: form.requested_token_type,
    resource: form.resource,
    scope: form.scope,
  });
}

/** NAME-D-7: why the agent asks, cut; the policy does not know it. */
export const reasonIn = ({ mandate_reason: reason }: { mandate_reason?: string }): string | undefined =>
  reason && beginningOf(reason, REASON_CHARS_MAX);

/** RAR-D-13: the details as granted, with a digest of each value that their types have as private. */
export const describeDetails = (
  { sha256 }: Pick<Ports["hash"], "sha256">,
  types: DetailTypes,
  details: readonly Detail[],
): readonly Detail[] =>
  details.map((one) => {
    const shown = Object.entries(one).map(([name, value]) => [
      name,
      types.get(one.type)?.fields.get(name)?.private ? `sha256:${sha256(JSON.stringify(value))}` : value,
    ]);
    return Object.fromEntries(shown) as Detail;
  });

/** PCL-D-7: how the trail names a value of a claim, which an auditor who knows the values recognizes. */
export const claimDigest = ({ ofName }: Pick<Ports["hash"], "ofName">, text: string): string =>
  ofName(JSON.stringify(["claim", text])).slice(0, 22);

/** PROD-6.1-2: the event has the whole incoming chain, also where the issued token will show none of it. */
export function describeSubject(
  issuer: string,
  { origin, chain, mayAct }: Subject,
  token: AuditedToken,
): Parties {
  // PROD-1-1: only a client of ours that acts for itself has us as its origin.
  const { iss, sub } = origin;
  const kind = iss === issuer ? "workload" : "user";
  return sparse<Parties>({ subject: { iss, kind, sub, token }, chain, may_act: mayAct });
}

/** The user of a family; its id stands for the refresh token, of which nothing is recorded (REFRESH-D-19). */
export const describeFamily = ({ id, origin: { iss, sub } }: Family): Required<Pick<Parties, "subject">> => ({
  subject: { iss, kind: "user", sub, token: { fingerprint: id, type: "refresh_token" } },
});

/** AUDIT-D-3: these members are enough to find the token again, and none could be used as a token. */
export function describeToken(
  ports: Pick<Ports, "hash">,
  { claims, signingInput }: Jws,
  type: string,
): AuditedToken {
  const { jti, iat, exp, scope, client_id: clientId, txn } = claims;
  const aud = audienceList(claims);
  return sparse<AuditedToken>({
    aud: aud.length > 0 ? aud : undefined,
    client_id: typeof clientId === "string" ? clientId : undefined,
    cnf: readConfirmation(claims),
    exp: typeof exp === "number" ? exp : undefined,
    fingerprint: ports.hash.sha256(signingInput),
    iat: typeof iat === "number" ? iat : undefined,
    jti: typeof jti === "string" ? jti : undefined,
    scope: typeof scope === "string" ? scope : undefined,
    txn: type === "txn_token" && typeof txn === "string" ? txn : undefined,
    type,
  });
}
