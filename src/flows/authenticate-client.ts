/** Who sends this token request: one mechanism, the one the client is registered for, and what it proved. */
import { isNamed } from "../policy/rules.ts";
import type { FetchRefused, Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { AuthMethod, ClientSource } from "../settings/authentication-methods.ts";
import { AUTH_METHODS } from "../settings/authentication-methods.ts";
import type { Client, SecretDigest } from "../settings/settings.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Presented } from "../spec/rfc7521.ts";
import { parseClientAuthentication } from "../spec/rfc7521.ts";
import { JWT_BEARER } from "../spec/rfc7523.ts";
import { JWT_SPIFFE, resolveClient } from "../spec/spiffe/client-auth.ts";
import { checkAssociation, findClient } from "./find-client.ts";
import type { Failure } from "./refusal.ts";
import { verifyAssertion } from "./verify-assertion.ts";
import { verifyCertificate } from "./verify-certificate.ts";
import type { VerifiedSvid } from "./verify-svid.ts";
import { verifySvid } from "./verify-svid.ts";

/** The client and the workload are two notions: a policy names actors by workload, OAuth knows clients. */
export type Authenticated = {
  clientId: string;
  method: AuthMethod;
  /** Undefined: a workload with no registration. */
  source?: ClientSource;
  registrationClass?: string;
  /** Undefined: no registration narrows it; every grant still needs a policy rule. */
  grantTypes?: readonly string[];
  scopes?: readonly string[];
  workload?: string;
  /** Whether its own access token may stand for that workload as actor token. */
  actorAccessToken?: boolean;
  defaultTarget?: string;
  /** The JWT-SVID behind it; it may serve as actor token of the same request without a second look. */
  svid?: VerifiedSvid;
  /** Which key or certificate it was, and which of our names it was meant for; for the audit trail. */
  proof?: { kid?: string; aud?: string; x5t?: string; jti?: string };
  /** What the answer to this request uses up, whatever the answer is. */
  spends?: Guard;
};

/** What the connection tells: where the request comes from, and the certificates of its handshake. */
export type From = { readonly address: string; readonly certificates: readonly Uint8Array[] };

/** PROD-1.2-1, RFC6749-3.2.1-1: every token request comes through here. */
export async function authenticateClient(
  ports: Ports,
  form: Form,
  authorization: string | undefined,
  from: From,
): Promise<Result<Authenticated, Failure>> {
  const presented = parseClientAuthentication(form, authorization);
  if (!presented.ok) return presented;
  const { clientId } = presented.value;
  // RFC6749-2.3.1-8: who has guessed too often waits, whether or not he has it right this time.
  const waitSeconds = ports.throttle.waitSeconds(from.address, clientId);
  if (waitSeconds > 0) return err({ kind: "throttled", reason: "failures_too_many", waitSeconds });
  const client = await prove(ports, presented.value, from);
  if (!client.ok) {
    if (client.error.kind !== "throttled") ports.throttle.failed(from.address, clientId);
    return client;
  }
  const rest = ports.throttle.spend(client.value.clientId);
  if (rest > 0) return err({ kind: "throttled", reason: "requests_too_many", waitSeconds: rest });
  return client;
}

/**
 * Anybody can make himself a client where documents count or registration is open, and each refusal of a client is a
 * record of its own: as long as no rule names him, he has as many tries as somebody who proves nothing.
 */
export function chargeStranger(
  ports: Ports,
  client: Authenticated,
  { address }: Pick<From, "address">,
): void {
  const madeItself = client.source === "metadata_document" || client.source === "registration";
  if (!madeItself || isNamed(ports.settings().policy, client)) return;
  ports.throttle.failed(address, client.clientId);
}

async function prove(
  ports: Ports,
  presented: Presented,
  from: From,
): Promise<Result<Authenticated, Failure>> {
  switch (presented.by) {
    case "certificate":
      // RFC8705-2-2: only what the handshake of this connection proved; with nothing there, nobody is there.
      return byCertificate(ports, from, presented.clientId);
    case "assertion":
      return byAssertion(ports, from, presented);
    default:
      return bySecret(ports, presented);
  }
}

const refused = (reason: string) => err({ kind: "client_refused", reason } as const);

/** Threats, outbound fetches: whatever a URL led to, the caller learns no more than of a wrong key. */
const withheld = ({ reason, waitSeconds }: FetchRefused) =>
  waitSeconds === undefined ? refused(reason) : err({ kind: "throttled", reason, waitSeconds } as const);

/** What the client's record adds to what was proven. */
function recordOf(client: Client) {
  const { clientId, source, grantTypes, scopes, registrationClass } = client;
  const { workload, actorAccessToken, defaultTarget } = client;
  return {
    clientId,
    source,
    grantTypes,
    ...(scopes !== undefined && { scopes }),
    ...(registrationClass !== undefined && { registrationClass }),
    ...(workload !== undefined && { workload }),
    ...(actorAccessToken !== undefined && { actorAccessToken }),
    ...(defaultTarget !== undefined && { defaultTarget }),
  };
}

// --- secret -----------------------------------------------------------------------------------------------------

/** What an unknown client's secret is compared with: it costs what a known one's costs. */
const NOBODY: readonly SecretDigest[] = [{ digest: "A".repeat(43) }];
/** With blanks, which neither a configured nor a stored client_id has. */
const NOBODYS_ID = "nobody has this name at all";

async function bySecret(
  ports: Ports,
  { by, clientId, secret }: Extract<Presented, { secret: string }>,
): Promise<Result<Authenticated, Failure>> {
  const client = await ports.clients.find(clientId);
  const nowSeconds = ports.clock.nowSeconds();
  const digest = ports.hash.sha256(secret);
  const known = client !== undefined && "secrets" in client.auth ? client.auth.secrets : NOBODY;
  let matches = false;
  for (const { digest: one, expiresAtSeconds = Number.POSITIVE_INFINITY } of known) {
    if (ports.hash.equal(digest, one) && nowSeconds < expiresAtSeconds) matches = true;
  }
  // A configured client was found without the store: a guess at it takes as long as one at a client that is not there.
  if (!matches && ports.settings().clients.has(clientId)) await ports.clients.find(NOBODYS_ID);
  // RFC6749-5.2-3: one answer for all of these.
  if (client === undefined) return refused("client_unknown");
  if (!matches) return refused("secret_wrong");
  // RFC6749-2.3.1-5: a client proves itself in the way it is registered for, and no other.
  const { method } = client.auth;
  if (AUTH_METHODS[method].presented !== by) return refused("method_not_registered");
  return ok({ ...recordOf(client), method });
}

// --- assertion --------------------------------------------------------------------------------------------------

async function byAssertion(
  ports: Ports,
  { address }: From,
  { type, assertion, clientId: requested }: Extract<Presented, { by: "assertion" }>,
): Promise<Result<Authenticated, Failure>> {
  // PROD-4.1-26: compared exactly; the content of the assertion is no hint.
  if (type === JWT_SPIFFE) return byJwtSvid(ports, assertion, requested, address);
  if (type !== JWT_BEARER) return refused("assertion_type_unsupported");
  const verified = await verifyAssertion(ports, assertion, requested, address);
  if (!verified.ok) return withheld(verified.error);
  const { client, jws, audience, spends } = verified.value;
  const { kid } = jws.header;
  const { jti } = jws.claims;
  return ok({
    ...recordOf(client),
    method: "private_key_jwt",
    proof: { aud: audience, ...(kid !== undefined && { kid }), ...(typeof jti === "string" && { jti }) },
    ...(spends !== undefined && { spends }),
  });
}

async function byJwtSvid(
  ports: Ports,
  assertion: string,
  requested: string | undefined,
  address: string,
): Promise<Result<Authenticated, Failure>> {
  const svid = await verifySvid(ports, assertion);
  if (!svid.ok) return refused(svid.error.reason);
  const { spiffeId, trustDomain, audience, jws } = svid.value;
  const { kid } = jws.header;
  const proven = {
    method: "spiffe_jwt",
    svid: svid.value,
    proof: { aud: audience, ...(kid !== undefined && { kid }) },
  } as const;
  // SPCA-3.1-8: a name in the request binds.
  if (requested !== undefined && !requested.startsWith("spiffe://")) {
    const found = await findClient(ports, requested, address);
    if (!found.ok) return withheld(found.error);
    const client = found.value;
    if (client.auth.method !== "spiffe_jwt") return refused("method_not_registered");
    const associated = checkAssociation(ports, client, spiffeId, trustDomain);
    if (!associated.ok) return refused(associated.error.reason);
    return ok({ ...recordOf(client), ...proven, workload: spiffeId });
  }
  const domain = ports.settings().trustDomains.get(trustDomain);
  if (domain === undefined) return refused("trust_domain_unknown");
  const clientId = resolveClient(spiffeId, requested, domain);
  if (!clientId.ok) return refused(clientId.error.kind);
  return ok({ clientId: clientId.value, workload: spiffeId, ...proven });
}

// --- certificate ------------------------------------------------------------------------------------------------

async function byCertificate(
  ports: Ports,
  { certificates, address }: From,
  requested: string | undefined,
): Promise<Result<Authenticated, Failure>> {
  if (certificates.length === 0) return refused("credentials_missing");
  const verified = await verifyCertificate(ports, certificates, requested, address);
  if (!verified.ok) return withheld(verified.error);
  const { clientId, method, client, workload, thumbprint } = verified.value;
  return ok({
    ...(client === undefined ? { clientId } : recordOf(client)),
    method,
    proof: { x5t: thumbprint },
    ...(workload !== undefined && { workload }),
  });
}
