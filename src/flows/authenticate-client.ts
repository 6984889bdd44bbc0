/** Who sends this token request: one mechanism, the one the client is registered for, and what it proved. */
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Presented } from "../spec/rfc7521.ts";
import { parseClientAuthentication } from "../spec/rfc7521.ts";
import { JWT_SPIFFE, resolveClient } from "../spec/spiffe/client-auth.ts";
import type { Failure } from "./outcome.ts";
import type { VerifiedSvid } from "./verify-svid.ts";
import { verifySvid } from "./verify-svid.ts";

export const AUTH_METHODS = ["client_secret_basic", "client_secret_post", "spiffe_jwt"] as const;

/** The client and the workload are two notions: a policy names actors by workload, OAuth knows clients. */
export type Authenticated = {
  clientId: string;
  method: (typeof AUTH_METHODS)[number];
  /** Undefined: no registration narrows it; every grant still needs a policy rule. */
  grantTypes?: readonly string[];
  workload?: string;
  defaultTarget?: string;
  /** The JWT-SVID behind it; it may serve as actor token of the same request without a second look. */
  svid?: VerifiedSvid;
};

/** PROD-1.2-1, RFC6749-3.2.1-1: every token request comes through here. */
export async function authenticateClient(
  ports: Ports,
  form: Form,
  authorization: string | undefined,
): Promise<Result<Authenticated, Failure>> {
  const presented = parseClientAuthentication(form, authorization);
  if (!presented.ok) return presented;
  return presented.value.by === "assertion"
    ? byAssertion(ports, presented.value)
    : bySecret(ports, presented.value);
}

const refused = (reason: string) => err({ kind: "client_refused", reason } as const);

/** What an unknown client's secret is compared with: it costs what a known one's costs. */
const NOBODY = ["A".repeat(43)];

async function bySecret(
  ports: Ports,
  { by, clientId, secret }: Extract<Presented, { secret: string }>,
): Promise<Result<Authenticated, Failure>> {
  const client = await ports.clients.find(clientId);
  const digest = ports.hash.sha256(secret);
  let matches = false;
  for (const known of client?.secretDigests ?? NOBODY) {
    if (ports.hash.equal(digest, known)) matches = true;
  }
  // RFC6749-5.2-3: one answer for all of these.
  if (client === undefined) return refused("client_unknown");
  if (!matches) return refused("secret_wrong");
  // RFC6749-2.3.1-5: a client proves itself in the way it is registered for, and no other.
  if (client.method !== by) return refused("method_not_registered");
  const { grantTypes, workload, defaultTarget } = client;
  return ok({
    clientId,
    method: by,
    grantTypes,
    ...(workload !== undefined && { workload }),
    ...(defaultTarget !== undefined && { defaultTarget }),
  });
}

async function byAssertion(
  ports: Ports,
  { type, assertion, clientId: requested }: Extract<Presented, { by: "assertion" }>,
): Promise<Result<Authenticated, Failure>> {
  // PROD-4.1-26: compared exactly; the content of the assertion is no hint.
  if (type !== JWT_SPIFFE) return refused("assertion_type_unsupported");
  const svid = await verifySvid(ports, assertion);
  if (!svid.ok) return refused(svid.error.reason);
  const { spiffeId, trustDomain } = svid.value;
  const domain = ports.settings().trustDomains.get(trustDomain);
  if (domain === undefined) return refused("trust_domain_unknown");
  const clientId = resolveClient(spiffeId, requested, domain);
  if (!clientId.ok) return refused(clientId.error.kind);
  return ok({ clientId: clientId.value, method: "spiffe_jwt", workload: spiffeId, svid: svid.value });
}
