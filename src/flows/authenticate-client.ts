/** Authenticates the client of a token request: by one mechanism, and by the method that it has on record. */
import { UNREACHABLE_SECONDS } from "../limits/clients.ts";
import { isIntrospector } from "../policy/judge.ts";
import { isNamed } from "../policy/rules.ts";
import type { ClientAuthPorts, FetchRefused, LimitPorts, Ports, ProofsTooMany } from "../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../result.ts";
import type { AssertionType } from "../settings/authentication-methods.ts";
import type { Client } from "../settings/settings.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Presented, PresentedAssertion, PresentedClient } from "../spec/rfc7521.ts";
import { JWT_BEARER } from "../spec/rfc7523.ts";
import { JWT_SPIFFE } from "../spec/spiffe/client-auth.ts";
import { platformId } from "../spec/workload-grant.ts";
import { type Failure, mayPass } from "./refusal.ts";
import type { From, MethodVerifier, Proven } from "./verifier.ts";
import { verifyAssertion } from "./verify-assertion.ts";
import { verifyCertificate } from "./verify-certificate.ts";
import { proofOfWorkload, verifyPlatformGrant } from "./verify-platform.ts";
import { verifyPublic } from "./verify-public.ts";
import { verifySecret } from "./verify-secret.ts";
import { verifySvidAssertion } from "./verify-svid.ts";

/** The client, which OAuth names, and apart from it the proven workload, which a policy names as actor. */
export type Authenticated = Omit<Proven, "record"> & OfRecord;

/** What its record says; for a workload without registration nothing, and every request still needs a policy rule. */
type OfRecord = Partial<
  Pick<
    Client,
    | "source"
    | "registrationClass"
    | "grantTypes"
    | "scopes"
    | "actorAccessToken"
    | "defaultTarget"
    | "detailTypes"
    | "bindsBy"
  >
>;

/**
 * What an endpoint admits beside a client that proves itself: a public client, or a workload by the grant of its
 * platform. The second looks at the keys of the request itself, to which such a grant or assertion may be bound.
 */
export type Admits = "proven" | "public" | "workload";

/** What a request with a form shows of its client, apart from its connection. */
export type ClientEvidence = { readonly form: Form; readonly presented: PresentedClient };

/**
 * PROD-1.2-1, RFC6749-3.2.1-1: every token request is authenticated here. Where public clients are admitted, one that
 * sends its `client_id` and no credential is identified by that.
 */
export function authenticateClient(
  ports: ClientAuthPorts & LimitPorts,
  { form, presented }: ClientEvidence,
  from: From,
  endpoint: string,
  admits: Admits,
): Awaitable<Result<Authenticated, Failure>> {
  if (!presented.ok) return presented;
  const { clientId: named } = presented.value;
  const { platforms, signIn } = ports.settings();
  const nothing = presentsNothing(presented.value, from) && signIn !== undefined;
  const own =
    admits === "workload" && platforms.size > 0
      ? proofOfWorkload(ports, presented.value, from, form)
      : undefined;
  // RFC6749-2.3.1-8: the proof is verified first, so that failures of others at this address refuse no valid one.
  const proving = ports.proofs.verify(from.address, (paths) => {
    if (admits === "public" && nothing) return verifyPublic(ports, presented.value, from);
    if (own !== undefined) return verifyPlatformGrant(ports, own, named);
    return prove(ports, presented.value, from, paths, endpoint);
  });
  return whenReady(proving, (proven): Result<Authenticated, Failure> => {
    if (!proven.ok) {
      const failure = failureOf(ports, proven.error, from, named);
      // MCPC-D-18: a client of people that was removed has to learn that it must register anew.
      const isGone = nothing && failure.kind === "client_refused" && failure.reason === "client_unknown";
      return err(isGone ? { ...failure, kind: "client_gone" } : failure);
    }
    const { method, clientId, platform } = proven.value;
    // PLAT-D-12: only an endpoint that looks at keys can check the key of a bound token.
    if (platform?.boundTo !== undefined && admits !== "workload") {
      return err({ kind: "client_refused", reason: "key_not_proven" });
    }
    // PLAT-D-16: the workloads of a registration share a rate, since a platform makes new ones at will.
    const bucket = platform === undefined ? clientId : platformId(platform.registration.name, "");
    // The name of a public client proves nothing, and anyone could use up a rate of it; so its failures are charged by
    // source.
    const rest = method === "none" ? 0 : ports.throttle.spend(bucket);
    if (rest > 0) return err({ kind: "throttled", reason: "requests_too_many", waitSeconds: rest });
    return ok(authenticated(proven.value));
  });
}

/**
 * With metadata documents or open registration enabled, anyone can become a client, and each refusal of a client is
 * an event of its own. A client that no rule and no target names has nothing to ask for, and is therefore limited like a
 * caller that fails to authenticate: before its request is decided and recorded.
 */
export function throttleUnnamedClient(
  ports: Pick<Ports, "settings" | "throttle">,
  client: Authenticated,
  { address }: Pick<From, "address">,
): Failure | undefined {
  const madeItself = client.source === "metadata_document" || client.source === "registration";
  const { policy } = ports.settings();
  if (!madeItself || isNamed(policy, client) || isIntrospector(policy, client)) return undefined;
  const waitSeconds = ports.throttle.failed(address, client.clientId);
  return waitSeconds > 0 ? { kind: "throttled", reason: "failures_too_many", waitSeconds } : undefined;
}

/**
 * PROD-4.1-26: the type of the assertion decides, compared exactly. SPCA-D-1: of the content, only that it is a JWT-SVID
 * counts beside it.
 */
const ASSERTION_VERIFIERS: { readonly [Type in AssertionType]: MethodVerifier<PresentedAssertion> } = {
  [JWT_BEARER]: verifyAssertion,
  [JWT_SPIFFE]: verifySvidAssertion,
};

const isAssertionType = (type: string): type is AssertionType => Object.hasOwn(ASSERTION_VERIFIERS, type);

/** A SPIFFE ID is never the name of a public client. */
const presentsNothing = ({ by, clientId }: Presented, { certificates }: From): boolean =>
  by === "certificate" && clientId?.startsWith("spiffe://") === false && certificates.length === 0;

const prove: MethodVerifier<Presented> = (ports, presented, from, paths, endpoint) => {
  switch (presented.by) {
    case "basic":
    case "body":
      return verifySecret(ports, presented, from, paths, endpoint);
    case "assertion":
      if (!isAssertionType(presented.type)) return err({ reason: "assertion_type_unsupported" });
      return ASSERTION_VERIFIERS[presented.type](ports, presented, from, paths, endpoint);
    case "certificate":
      return verifyCertificate(ports, presented, from, paths, endpoint);
  }
};

/**
 * The caller learns no more about what was fetched for it than about a wrong key. After too many failures it is told to
 * wait instead; a fetch that was not made is no failure.
 */
function failureOf(
  ports: Pick<Ports, "throttle">,
  error: FetchRefused | ProofsTooMany,
  { address }: From,
  clientId: string | undefined,
): Failure {
  const { reason } = error;
  // MCPC-D-17: the answer is not `invalid_client`, at which clients forget their tokens.
  if ("unreachable" in error) {
    return { kind: "client_unreachable", reason, waitSeconds: UNREACHABLE_SECONDS };
  }
  const passing = mayPass({ kind: "client_refused", reason });
  if (passing.waitSeconds !== undefined) return passing;
  if ("retrySeconds" in error) return { kind: "overloaded", reason, waitSeconds: error.retrySeconds };
  const { waitSeconds: fetchSeconds } = error;
  const waitSeconds = fetchSeconds ?? ports.throttle.failed(address, clientId);
  if (waitSeconds > 0) return { kind: "throttled", reason, waitSeconds };
  return defined<Failure>({ kind: error.as ?? "client_refused", reason, registrations: error.registrations });
}

/** Builds the client that was proven, with the members of its record. */
function authenticated({ record, ...proven }: Proven): Authenticated {
  return defined<Authenticated>({
    source: record?.source,
    registrationClass: record?.registrationClass,
    grantTypes: record?.grantTypes,
    scopes: record?.scopes ?? proven.platform?.scopes,
    actorAccessToken: record?.actorAccessToken,
    defaultTarget: record?.defaultTarget,
    bindsBy: record?.bindsBy,
    detailTypes: record?.detailTypes,
    ...proven,
    workload: proven.workload ?? record?.workload,
  });
}
