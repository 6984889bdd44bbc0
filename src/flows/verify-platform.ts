/** The JWT of a platform: from its text to the workload that it proves, as grant, client assertion, actor or subject. */
import type { TokenReason } from "../audit/reasons.ts";
import { beginningOf } from "../audit/safe-text.ts";
import { IGNORED_CLIENT_ID_CHARS_MAX } from "../limits/input.ts";
import type { AccessRequest } from "../policy/access.ts";
import { isProven } from "../policy/binding.ts";
import type { BasePorts, FetchRefused, ForeignTokenPorts, Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../result.ts";
import { assertionAudiences, TOKEN_PATH } from "../settings/audiences.ts";
import type { Settings, TrustedIssuer } from "../settings/settings.ts";
import type { Form } from "../spec/rfc6749.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { Presented, PresentedAssertion } from "../spec/rfc7521.ts";
import { JWT_BEARER_GRANT } from "../spec/rfc7523.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { ID_TOKEN, JWT, TOKEN_EXCHANGE } from "../spec/rfc8693.ts";
import { checkAlgorithm } from "../spec/rfc8725.ts";
import {
  checkWorkload,
  isPlatformName,
  isWorkload,
  joinedName,
  type Match,
  matchRegistration,
  platformId,
  takesWorkloadGrants,
  type WorkloadUse,
} from "../spec/workload-grant.ts";
import { isDisabled } from "./endings.ts";
import type { Failure, FinalKind } from "./refusal.ts";
import {
  type From,
  type MethodVerifier,
  noCredentials,
  type PlatformProof,
  type PlatformUse,
  type Proof,
  type Proven,
} from "./verifier.ts";

/**
 * PLAT-D-14: before the signature holds there is one answer for every cause; after it, the answer says whether the
 * platform or the administrator of this server has to act.
 */
type PlatformRefused = { reason: TokenReason; as: keyof typeof OF_EXCHANGE } & Pick<
  FetchRefused,
  "registrations"
>;

/** RFC8693-2.2.2-2: where the token came as the subject token of an exchange, the same is told by the code of that. */
const OF_EXCHANGE = {
  client_refused: "client_refused",
  grant_refused: "token_refused",
  platform_refused: "exchange_platform_refused",
  workload_not_admitted: "exchange_not_admitted",
} as const satisfies Record<string, FetchRefused["as"]>;

type Verified = Awaitable<Result<PlatformProof, PlatformRefused>>;

const refuse = (as: PlatformRefused["as"], reason: TokenReason) => err({ as, reason });

const issuerOf = (
  settings: Pick<Settings, "trustedIssuers">,
  { iss }: JsonObject,
): TrustedIssuer | undefined => (typeof iss === "string" ? settings.trustedIssuers.get(iss) : undefined);

const hasWorkloads = (issuer: TrustedIssuer | undefined): issuer is TrustedIssuer =>
  issuer !== undefined && issuer.workloads.length > 0;

type Place = "client assertion" | "grant" | "grant without client" | "exchange without client";

/** Whether a JWT that is no workload's may be another's in this place. */
const MAY_BE_OTHERS: Readonly<Record<Place, (issuer: TrustedIssuer | undefined) => boolean>> = {
  "client assertion": (issuer) => !hasWorkloads(issuer) || issuer.vouches !== undefined,
  grant: (issuer) => !hasWorkloads(issuer) || issuer.grants !== undefined,
  // RFC6749-4.4-1: a grant of an issuer that is trusted for those of users still needs its client. PLAT-D-14: where it has
  // workloads too, the signature is verified first, or the answer would tell which subjects are those of workloads.
  "grant without client": (issuer) => issuer?.grants !== undefined && !hasWorkloads(issuer),
  // FEDC-D-1: any other subject token still needs a client that authenticates.
  "exchange without client": (issuer) => !hasWorkloads(issuer),
};

/** PLAT-D-15: whether a JWT is a workload's is decided by the registrations of its issuer and never by the request. */
export function isOfPlatform(
  settings: Pick<Settings, "trustedIssuers">,
  claims: JsonObject,
  place: Place,
): boolean {
  const issuer = issuerOf(settings, claims);
  return isWorkload(issuer?.workloads ?? [], claims) || !MAY_BE_OTHERS[place](issuer);
}

/** PLAT-D-4: size, form, issuer, algorithm, key, signature; then one registration, and the claims by its rules. */
function verifyPlatformToken(
  ports: ForeignTokenPorts,
  compact: string,
  use: PlatformUse,
  endpoint = TOKEN_PATH,
): Verified {
  const jws = ports.verifier.parse(compact);
  if (!jws.ok) return refuse("grant_refused", jws.error.kind);
  const { header, claims } = jws.value;
  const issuer = issuerOf(ports.settings(), claims);
  if (!hasWorkloads(issuer)) return refuse("grant_refused", "issuer_unknown");
  const algorithm = checkAlgorithm(header, issuer.algorithms);
  if (!algorithm.ok) return refuse("grant_refused", algorithm.error.kind);
  // WAG-6.1-3, WIF-V-1: only the keys of this issuer, and none that the JWT has or names.
  return whenReady(ports.issuers.key(issuer.issuer, header), (key): Verified => {
    if (!key.ok) return refuse("grant_refused", `issuer_${key.error}`);
    const match = matchRegistration(issuer.workloads, claims);
    const { verify, verifyRepeated } = ports.verifier;
    const holds = match.ok && match.value.registration.reusable ? verifyRepeated : verify;
    if (!holds(jws.value, key.value)) return refuse("grant_refused", "signature_invalid");
    const admitted = admit(issuer, match, claims, use);
    if (!admitted.ok) return admitted;
    return whenOk(readProof(ports, compact, jws.value, admitted.value, use, endpoint), (proof): Verified => {
      const out = refuse("workload_not_admitted", "subject_disabled");
      // FEDC-D-11: it is disabled by its `sub`, and by what it is named by.
      const named = joinedName(proof.id) ?? proof.sub;
      if (issuer.disabledSubjects.has(named)) return out;
      // POLICY-D-20
      const disabled = isDisabled(ports, proof.origin, { iss: issuer.issuer, sub: named });
      return whenReady(disabled, (isOut): Verified => (isOut ? out : ok(proof)));
    });
  });
}

/** Whether the registrations admit a workload, whose JWT is signed, in this role. */
function admit(
  { grants, acceptAs, disabledSubjects }: TrustedIssuer,
  match: ReturnType<typeof matchRegistration>,
  { sub }: JsonObject,
  use: PlatformUse,
): Result<Match, PlatformRefused> {
  if (!match.ok) {
    const { kind: reason } = match.error;
    const mayBeOfUser =
      (use === "grant" && grants !== undefined) || (use === "exchange" && acceptAs.length > 0);
    // FEDC-D-3: the JWT of a user needs a client that authenticates.
    if (reason === "workload_not_registered" && mayBeOfUser) return refuse("client_refused", reason);
    const registrations = "names" in match.error ? match.error.names : undefined;
    return err(defined<PlatformRefused>({ as: "workload_not_admitted", reason, registrations }));
  }
  const disabled = typeof sub === "string" && disabledSubjects.has(sub);
  if (disabled) return refuse("workload_not_admitted", "subject_disabled");
  const isOfRole = match.value.registration.uses.includes(use === "exchange" ? "grant" : use);
  return isOfRole ? match : refuse("workload_not_admitted", "workload_use_refused");
}

const OF_REGISTRATION: readonly TokenReason[] = ["workload_name_missing", "workload_name_too_long"];

function readProof(
  { settings, clock, hash }: BasePorts,
  compact: string,
  jws: Parameters<typeof checkWorkload>[0] & { signingInput: string },
  { registration, matched }: Match,
  use: PlatformUse,
  endpoint: string,
): Result<PlatformProof, PlatformRefused> {
  const inForce = settings();
  const { clockSkewSeconds: skewSeconds, trustDomains } = inForce;
  const checked = checkWorkload(jws, registration, {
    audiences: assertionAudiences(inForce, endpoint),
    nowSeconds: clock.nowSeconds(),
    skewSeconds,
    isTrustDomain: (name) => trustDomains.has(name),
  });
  if (!checked.ok) {
    const { kind } = checked.error;
    // FEDC-D-12: what the registration makes of the token is for the operator to change.
    return refuse(OF_REGISTRATION.includes(kind) ? "workload_not_admitted" : "platform_refused", kind);
  }
  const { sub, jti, expiresAtSeconds } = checked.value;
  const { name, issuer, reusable } = registration;
  const fingerprint = hash.sha256(jws.signingInput);
  // PLAT-D-6, WAG-6.1-4: spent within the registration and for every role; without `jti` by what is signed, since a
  // signature can have a twin.
  const spends: Guard = {
    kind: use === "client" ? "jti_fresh" : "grant_fresh",
    issuer: platformId(name, jti === undefined ? "digest" : "jti"),
    jti: jti ?? fingerprint,
    expiresAtSeconds: expiresAtSeconds + skewSeconds,
  };
  return ok(
    defined<PlatformProof>({
      ...checked.value,
      use,
      compact,
      registration,
      matched,
      fingerprint,
      origin: { iss: issuer, sub },
      kid: jws.header.kid,
      spends: reusable ? undefined : spends,
    }),
  );
}

/** PLAT-D-12: a key that the platform bound its token to is proven in the same request. */
export const provesKey = (
  { boundTo }: Pick<PlatformProof, "boundTo">,
  keys: AccessRequest["keys"] = {},
): boolean => boundTo === undefined || (keys !== "assumed" && isProven(boundTo, keys));

/** The same in a request whose keys are known already. */
export const verifyPlatformTokenOf = (
  ports: ForeignTokenPorts,
  compact: string,
  use: WorkloadUse,
  keys: AccessRequest["keys"],
): Verified =>
  whenOk(verifyPlatformToken(ports, compact, use), (proof) =>
    provesKey(proof, keys) ? ok(proof) : refuse("platform_refused", "key_not_proven"),
  );

const NOT_PROVEN: Partial<Record<PlatformUse, FinalKind>> = {
  grant: "platform_refused",
  exchange: "exchange_platform_refused",
};

/** A bound token whose key the request does not prove, told as its role has it. */
export const keyNotProven = ({ use }: Pick<PlatformProof, "use">): Failure => ({
  kind: NOT_PROVEN[use] ?? "client_refused",
  reason: "key_not_proven",
});

// --- the client of a request ------------------------------------------------------------------------------------

/** WAG-3-1, WAG-5-1, PLAT-D-1: a workload of a registration is a client without an entry of its own. */
const provenBy = (platform: PlatformProof): Proven =>
  defined<Proven>({
    clientId: platform.id,
    method: "private_key_jwt",
    workload: platform.id,
    platform,
    proof: defined<Proof>({ aud: platform.audience, kid: platform.kid, jti: platform.jti }),
    spends: platform.spends,
  });

export const verifyPlatformAssertion: MethodVerifier<PresentedAssertion> = (
  ports,
  { assertion, clientId: requested },
  _from,
  _paths,
  endpoint,
) =>
  whenReady(
    verifyPlatformToken(ports, assertion, "client", endpoint),
    (verified): Result<Proven, FetchRefused> => {
      // PROD-7.4-1: a client assertion is refused like any other.
      if (!verified.ok) return err({ ...verified.error, as: "client_refused" });
      // RFC7521-4.2-2, WIF-V-2: a `client_id` beside the assertion is the name of the workload here, and not its `sub`.
      const differs = requested !== undefined && requested !== verified.value.id;
      return differs ? err({ reason: "client_id_differs" }) : ok(provenBy(verified.value));
    },
  );

/** The JWT that is the only proof of a request, as its grant or as its subject token. */
type JwtAlone = { token: string; use: Extract<PlatformUse, "grant" | "exchange"> };

/**
 * WAG-5-2: the JWT of a platform, if it is the only proof of the request. A certificate of a client, which names it or is
 * an SVID, authenticates that client; any other certificate is the key that the JWT is bound to.
 */
export function proofOfWorkload(
  { settings }: Pick<Ports, "settings">,
  presented: Presented,
  { certificates, leaf }: From,
  form: Form,
): JwtAlone | undefined {
  const sent = jwtAlone(form);
  const isSvid = leaf?.ok && leaf.value.subjectAltNames?.uris.some((uri) => /^spiffe:/i.test(uri));
  const namesClient = certificates.length > 0 && (presented.clientId !== undefined || isSvid);
  if (sent === undefined || presented.by !== "certificate" || namesClient) return undefined;
  if (!takesWorkloadGrants(settings().platforms)) return undefined;
  const jws = parseJws(sent.token);
  const claims = jws.ok ? jws.value.claims : {};
  return isOfPlatform(settings(), claims, `${sent.use} without client`) ? sent : undefined;
}

const EXCHANGED_ALONE: readonly (string | undefined)[] = [JWT, ID_TOKEN];

/** FEDC-D-1: an exchange whose subject token is a JWT, without an actor, may be the grant of a workload. */
function jwtAlone(form: Form): JwtAlone | undefined {
  const { grant_type: grantType, assertion, subject_token: subject, subject_token_type: type } = form;
  if (grantType === JWT_BEARER_GRANT)
    return assertion === undefined ? undefined : { token: assertion, use: "grant" };
  const hasActor = form.actor_token !== undefined || form.actor_token_type !== undefined;
  if (grantType !== TOKEN_EXCHANGE || subject === undefined || hasActor) return undefined;
  return EXCHANGED_ALONE.includes(type) ? { token: subject, use: "exchange" } : undefined;
}

/** WAG-5-2, WIF-T-1, FEDC-D-1: a JWT without client authentication, which proves the workload that is its client. */
export function verifyPlatformGrant(
  ports: ForeignTokenPorts,
  { token, use }: JwtAlone,
  clientId: string | undefined,
): Awaitable<Result<Proven, FetchRefused>> {
  type Answer = Awaitable<Result<Proven, FetchRefused>>;
  return whenReady(verifyPlatformToken(ports, token, use), (verified): Answer => {
    // RFC6749-4.4-1: it is the grant of a user, whose client did not authenticate.
    if (!verified.ok) {
      const { as } = verified.error;
      if (as === "client_refused") return err({ reason: noCredentials(ports) });
      return use === "grant" ? verified : err({ ...verified.error, as: OF_EXCHANGE[as] });
    }
    const platform = verified.value;
    // PLAT-D-10: a registration with clients makes a stolen assertion worthless alone.
    if (platform.registration.clients !== undefined) return err({ reason: "workload_client_missing" });
    if (clientId === undefined || clientId === platform.id) return ok(provenBy(platform));
    // PLAT-D-9: a name of a client that is known here needs its proof; any other has no meaning, and is not fetched.
    if (/^spiffe:/i.test(clientId) || isPlatformName(clientId)) return err({ reason: "client_id_differs" });
    return whenReady(ports.clients.find(clientId), (known) => {
      if (known !== undefined) return err({ reason: "client_id_differs" });
      const ignoredClientId = beginningOf(clientId, IGNORED_CLIENT_ID_CHARS_MAX);
      return ok(provenBy({ ...platform, ignoredClientId }));
    });
  });
}
