/** Who sends this token request: one mechanism, the one the client is registered for, and what it proved. */
import { isNamed } from "../policy/rules.ts";
import type { FetchRefused, Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { AssertionType, AuthMethod, ClientSource } from "../settings/authentication-methods.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Presented, PresentedAssertion } from "../spec/rfc7521.ts";
import { parseClientAuthentication } from "../spec/rfc7521.ts";
import { JWT_BEARER } from "../spec/rfc7523.ts";
import { JWT_SPIFFE } from "../spec/spiffe/client-auth.ts";
import type { Failure } from "./refusal.ts";
import type { From, Proof, Proven, VerifiedSvid, Verifier } from "./verifier.ts";
import { verifyAssertion } from "./verify-assertion.ts";
import { verifyCertificate } from "./verify-certificate.ts";
import { verifySecret } from "./verify-secret.ts";
import { verifySvidAssertion } from "./verify-svid.ts";

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
  proof?: Proof;
  /** What the answer to this request uses up, whatever the answer is. */
  spends?: Guard;
};

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
  const proven = await prove(ports, presented.value, from);
  if (!proven.ok) {
    const failure = withheld(proven.error);
    if (failure.kind !== "throttled") ports.throttle.failed(from.address, clientId);
    return err(failure);
  }
  const rest = ports.throttle.spend(proven.value.clientId);
  if (rest > 0) return err({ kind: "throttled", reason: "requests_too_many", waitSeconds: rest });
  return ok(authenticated(proven.value));
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

/** Of assertions, by their type (PROD-4.1-26: compared exactly; the content of the assertion is no hint). */
const ASSERTION_VERIFIERS: { readonly [Type in AssertionType]: Verifier<PresentedAssertion> } = {
  [JWT_BEARER]: verifyAssertion,
  [JWT_SPIFFE]: verifySvidAssertion,
};

const isAssertionType = (type: string): type is AssertionType => Object.hasOwn(ASSERTION_VERIFIERS, type);

async function prove(ports: Ports, presented: Presented, from: From): Promise<Result<Proven, FetchRefused>> {
  switch (presented.by) {
    case "basic":
    case "body":
      return verifySecret(ports, presented, from);
    case "assertion":
      if (!isAssertionType(presented.type)) return err({ reason: "assertion_type_unsupported" });
      return ASSERTION_VERIFIERS[presented.type](ports, presented, from);
    case "certificate":
      return verifyCertificate(ports, presented, from);
  }
}

/** The caller learns no more of what a URL led to than of a wrong key. */
const withheld = ({ reason, waitSeconds }: FetchRefused): Failure =>
  waitSeconds === undefined ? { kind: "client_refused", reason } : { kind: "throttled", reason, waitSeconds };

/** What was proven, with what the client's record adds to it. */
function authenticated({ record, ...proven }: Proven): Authenticated {
  return defined<Authenticated>({
    source: record?.source,
    registrationClass: record?.registrationClass,
    grantTypes: record?.grantTypes,
    scopes: record?.scopes,
    actorAccessToken: record?.actorAccessToken,
    defaultTarget: record?.defaultTarget,
    ...proven,
    workload: proven.workload ?? record?.workload,
  });
}
