/** RFC 7523 2.1: a JWT authorization grant of a trusted issuer becomes an access token here (IDC 2.4, ID-JAG 4.4). */

import type { AuditEvent } from "../audit/event.ts";
import type { PolicySet } from "../policy/rules.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import { GRANT_TYP } from "../spec/identity-chaining.ts";
import type { Form, TokenAnswer } from "../spec/rfc6749.ts";
import { parseScope } from "../spec/rfc6749.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { GrantProfile } from "../spec/rfc7523.ts";
import { parseGrant } from "../spec/rfc7523.ts";
import { requestedTarget } from "../spec/rfc8707.ts";
import { JWT_TYPES } from "../spec/rfc8725.ts";
import type { ReadGrant } from "./ask/grant.ts";
import { checkGrantClaims, grantIssuer, readGrant } from "./ask/grant.ts";
import { describeClient, describeRequest, describeToken } from "./audit-fields.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { askingAs, issue, spentBy } from "./issue.ts";
import type { Failure, RefusedRequest, RequestNote } from "./refusal.ts";
import { verifyForeignToken } from "./subject-token.ts";

export async function redeemGrant(
  ports: Ports,
  client: Authenticated,
  form: Form,
  request: RequestNote,
): Promise<Result<TokenAnswer, RefusedRequest>> {
  const { policy, skewSeconds } = ports.settings();
  let event: Omit<AuditEvent, "type" | "outcome" | "reason"> = {
    request,
    client: describeClient(client),
    mode: "redemption",
    requested: describeRequest(form),
  };
  const refuse = (failure: Failure) =>
    err({
      failure,
      event: { ...event, type: "grant.denied", outcome: "deny", reason: failure.reason },
    } as const);

  // RFC7523-2.1-1, IDC-2.4.1-1
  if (form.assertion === undefined) return refuse({ kind: "request_malformed", reason: "assertion_missing" });
  const target = requestedTarget(form.resource, form.audience, policy);
  if (!target.ok) return refuse({ kind: "target_refused", reason: target.error.kind });
  const scope = form.scope === undefined ? undefined : parseScope(form.scope);
  if (scope?.ok === false) return refuse({ kind: "scope_refused", reason: scope.error.kind });

  const jws = parseJws(form.assertion);
  if (!jws.ok) return refuse({ kind: "grant_refused", reason: jws.error.kind });
  const signed = await verifyGrant(ports, jws.value);
  if (!signed.ok) return refuse({ kind: "grant_refused", reason: signed.error.reason });
  const { issuer, profile } = signed.value;
  // From here on it is known whose it is, also where it came into the wrong hands.
  const token = describeToken(ports, jws.value, "grant");
  event = { ...event, subject: { iss: issuer.issuer, sub: subjectOf(jws.value), kind: "user", token } };
  const checked = checkGrantClaims(ports, issuer, jws.value, client.clientId, profile);
  if (!checked.ok) return refuse({ kind: "grant_refused", reason: checked.error.reason });
  const { grant } = checked.value;
  const read = await readGrant(ports, issuer, grant, jws.value.claims);
  if (!read.ok) return refuse({ kind: "grant_refused", reason: read.error.reason });
  const { sub, subject } = read.value;
  event = {
    ...event,
    subject: { ...subject.origin, kind: "user", token },
    chain: subject.chain,
    ...(subject.mayAct !== undefined && { may_act: subject.mayAct }),
  };
  const aim = aimOf(read.value, target.value, client.defaultTarget, policy);
  if (!aim.ok) return refuse({ kind: "grant_refused", reason: aim.error.reason });

  const { jti, expiresAtSeconds } = grant;
  const issued = await issue(ports, {
    ask: {
      mode: "redemption",
      ...askingAs(client),
      subject,
      ...(aim.value !== undefined && { target: aim.value }),
      ...(scope !== undefined && { scope: scope.value }),
    },
    sub,
    chain: subject.chain, // IDC trap 5: carried onward, and nobody is added who was not in it
    ancestors: [],
    // IDC-5.5-2, EMA-7.4.2-2: spent last, with the token, until the slowest clock has it expired.
    spends: [
      ...spentBy(client),
      { kind: "grant_fresh", issuer: issuer.issuer, jti, expiresAtSeconds: expiresAtSeconds + skewSeconds },
    ],
    tellsResource: read.value.resources.length > 0,
    event,
    allowedType: "grant.redeemed",
    deniedType: "grant.denied",
  });
  const aimedByGrant = target.value === undefined && read.value.resources.length > 0;
  return issued.ok
    ? issued
    : err({ ...issued.error, failure: asGrantRefused(issued.error.failure, aimedByGrant) });
}

/**
 * IDC-2.4.2-5: what the policy does not allow is an invalid grant, like one that is broken; EMA-7.6.2-1: so is a target
 * that nobody but the grant has named.
 */
export function asGrantRefused(failure: Failure, aimedByGrant: boolean): Failure {
  const { kind } = failure;
  const refused =
    kind === "policy_denied" || kind === "token_refused" || (kind === "target_refused" && aimedByGrant);
  return refused ? { ...failure, kind: "grant_refused" } : failure;
}

type Refused = { reason: string };

const subjectOf = ({ claims }: Jws): string => (typeof claims.sub === "string" ? claims.sub : "");

/** RFC7523-3-16: an issuer that is trusted for this has signed it; what it says counts for nothing yet. */
async function verifyGrant(
  ports: Ports,
  jws: Jws,
): Promise<Result<{ issuer: TrustedIssuer; profile: GrantProfile }, Refused>> {
  const named = parseGrant(jws, ports.settings().issuer);
  if (!named.ok) return err({ reason: named.error.kind });
  const { issuer: name, profile } = named.value;
  const issuer = grantIssuer(ports, name, profile);
  if (!issuer.ok) return issuer;
  const signed = await verifyForeignToken(ports, issuer.value, typesOf(issuer.value, profile), jws);
  return signed.ok ? ok({ issuer: issuer.value, profile }) : signed;
}

/** RFC8725-3.12-v1: of an issuer whose other JWTs count here too, a grant is one only by its own type. */
function typesOf(
  { acceptAs, vouches, statements = false }: TrustedIssuer,
  profile: GrantProfile,
): TrustedIssuer["types"] {
  if (profile === "id-jag") return JWT_TYPES.idJag;
  return acceptAs.length > 0 || vouches !== undefined || statements ? [GRANT_TYP] : JWT_TYPES.grant;
}

/**
 * EMA-5.1-1, EMA-7.6.2-1: the resource of the grant, letter by letter; of several the one that is asked for, by
 * whatever name of it. A grant without any is for what is asked for, or for the client's default.
 */
export function aimOf(
  { resources }: Pick<ReadGrant, "resources">,
  requested: string | undefined,
  otherwise: string | undefined,
  { targets }: Pick<PolicySet, "targets">,
): Result<string | undefined, Refused> {
  const [first, ...more] = resources;
  if (first === undefined) return ok(requested ?? otherwise);
  // Another authorization server is no API of ours.
  const isOurs = (name: string): boolean => targets.has(name) && targets.get(name)?.partner === undefined;
  if (!resources.every(isOurs)) return err({ reason: "grant_resource_unknown" });
  if (requested === undefined) {
    return more.length === 0 ? ok(first) : err({ reason: "grant_resources_several" });
  }
  const named = [requested, ...resources].find(
    (one) => resources.includes(one) && targets.get(one) === targets.get(requested),
  );
  return named === undefined ? err({ reason: "grant_resource_differs" }) : ok(named);
}
