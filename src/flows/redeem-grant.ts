/** RFC 7523 2.1: a JWT authorization grant of a trusted issuer, for an access token here (IDC 2.4, ID-JAG 4.4). */
import type { ForeignTokenPorts } from "../ports.ts";
import { type Awaitable, err, ok, type Result, whenOk, whenReady } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import { GRANT_TYP } from "../spec/identity-chaining.ts";
import { parseJws } from "../spec/rfc7515.ts";
import { type GrantProfile, parseGrant } from "../spec/rfc7523.ts";
import { JWT_TYPES } from "../spec/rfc8725.ts";
import { describeRequest, describeSubject, describeToken } from "./audit-fields.ts";
import { readBroughtGrant, readOwnGrant } from "./options/platforms.ts";
import { grantIssuer, readGrant } from "./order/grant.ts";
import type { Order, Refused, ResolvedSubject } from "./order/order.ts";
import type { RefusedRequest } from "./refusal.ts";
import { verifySigned } from "./subject-token.ts";
import { readRequest, refuseRequest, type TokenRequest } from "./token-request.ts";
import { isOfPlatform } from "./verify-platform.ts";

const MODE = { mode: "redemption" } as const;

export function readRedemption(
  ports: ForeignTokenPorts,
  request: TokenRequest,
): Awaitable<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  const { assertion } = form;
  // RFC7523-2.1-1, IDC-2.4.1-1: the grant is the parameter `assertion`.
  if (assertion === undefined) {
    const failure = { kind: "request_malformed", reason: "assertion_missing" } as const;
    return refuseRequest(request, failure, { ...MODE, requested: describeRequest(form) });
  }
  if (client.platform?.compact === assertion) return readOwnGrant(ports, request, client.platform);
  const jws = parseJws(assertion);
  const settings = ports.settings();
  if (jws.ok && settings.platforms.size > 0 && isOfPlatform(settings, jws.value.claims, "grant")) {
    return readBroughtGrant(ports, request, assertion);
  }
  return readRequest(ports, request, MODE, { subject: () => verifyGrant(ports, jws, client.clientId) });
}

/** RFC7523-3-16: the claims of a grant count only once a trusted issuer's signature on it is verified. */
function verifyGrant(
  ports: ForeignTokenPorts,
  parsed: ReturnType<typeof parseJws>,
  clientId: string,
): Awaitable<Result<ResolvedSubject, Refused>> {
  const { issuer: us } = ports.settings();
  if (!parsed.ok) return err({ reason: parsed.error.kind });
  const jws = parsed.value;
  const named = parseGrant(jws, us);
  if (!named.ok) return err({ reason: named.error.kind });
  const issuer = grantIssuer(ports, named.value);
  if (!issuer.ok) return issuer;
  const { profile } = named.value;
  return whenOk(verifySigned(ports, issuer.value, typesOf(issuer.value, profile), jws), () => {
    const token = describeToken(ports, jws, "grant");
    const reading = readGrant(ports, issuer.value, profile, jws.claims, clientId);
    return whenReady(reading, (read): Result<ResolvedSubject, Refused> => {
      if (read.ok) return ok({ ...read.value, parties: describeSubject(us, read.value.subject, token) });
      // The signature is good, so the trail names the subject, also where the grant came to the wrong client.
      const { iss, sub } = { iss: issuer.value.issuer, sub: jws.claims.sub };
      const subject = { iss, sub: typeof sub === "string" ? sub : "", kind: "user", token } as const;
      return err({ ...read.error, parties: { subject } });
    });
  });
}

/** RFC8725-3.12-v1: where other JWTs of an issuer count here too, only the type tells that one is a grant. */
function typesOf(
  { acceptAs, vouches, statements = false, workloads }: TrustedIssuer,
  profile: GrantProfile,
): TrustedIssuer["types"] {
  if (profile === "id-jag") return JWT_TYPES.idJag;
  const signsOthers = acceptAs.length > 0 || vouches !== undefined || statements || workloads.length > 0;
  return signsOthers ? [GRANT_TYP] : JWT_TYPES.grant;
}
