/** The subject token of an exchange, verified by the rules of its declared type (RFC8693-2.1-20): ours, or a trusted issuer's. */
import type { TokenReason } from "../audit/reasons.ts";
import type { PresentedJob } from "../policy/jobs.ts";
import type { ForeignTokenPorts, OwnKeys, OwnTokenPorts, Ports } from "../ports.ts";
import type { TokenRecord } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../result.ts";
import type { ForeignTokenType, TrustedIssuer } from "../settings/settings.ts";
import type { Jws } from "../spec/rfc7515.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { ACCESS_TOKEN, type Exchange, ID_TOKEN, JWT, TXN_TOKEN } from "../spec/rfc8693.ts";
import { checkAlgorithm, checkKind, checkType, JWT_TYPES } from "../spec/rfc8725.ts";
import { requestersOf } from "../spec/transaction-tokens.ts";
import { describeSubject, describeToken } from "./audit-fields.ts";
import type { RequestingClient, ResolvedSubject } from "./order/order.ts";
import {
  type ForeignToken,
  findIssuer,
  isWorkloadSubject,
  type OwnSubject,
  readForeignSubject,
  readOwnSubject,
  readWorkloadSubject,
  subjectIssuer,
} from "./order/subject.ts";
import { findOwnKey, findTransactionKey, isOwn, verifyOwnToken } from "./verify-own-token.ts";
import { verifyPlatformTokenOf } from "./verify-platform.ts";

type Refused = { reason: TokenReason; isOfEndedJob?: true };

/** The client is the one that presents it, with the keys that it proved. */
export function verifySubject(
  ports: OwnTokenPorts & ForeignTokenPorts & { grantSigner: OwnKeys },
  { subjectToken, subjectTokenType, requestedType }: Exchange,
  { clientId, keys }: Pick<RequestingClient, "clientId" | "keys">,
): Awaitable<Result<ResolvedSubject, Refused>> {
  const jws = ports.verifier.parse(subjectToken);
  if (!jws.ok) return err({ reason: jws.error.kind });
  const { claims } = jws.value;
  const isInside = requestedType === "txn_token";
  if (subjectTokenType === TXN_TOKEN) return verifyTransaction(ports, jws.value);
  const tokenType = FOREIGN_TYPES[subjectTokenType];
  // RFC8693-3-3: an access token is ours, unless the entry of its issuer says that its own come under this type too.
  // RFC8693-D-1: ours is a JWT as well, and libraries call it one.
  const isOurs =
    isOwn(ports, jws.value) || (tokenType === "access_token" && !isForeignAccessToken(ports, claims));
  if (isOurs && tokenType !== "id_token")
    // TXN-D-9: of a token for inside, claims of the one that came in may be facts.
    return whenOk(verifyOwn(ports, jws.value), (read) => ok(isInside ? { ...read, claims } : read));
  if (tokenType === "jwt" && isWorkloadSubject(ports.settings(), claims)) {
    return whenOk(verifyPlatformTokenOf(ports, subjectToken, "subject", keys), (platform) => {
      const token = describeToken(ports, jws.value, "jwt");
      const parties = { subject: { ...platform.origin, kind: "workload", token } } as const;
      return ok({ ...readWorkloadSubject(ports.settings().issuer, platform), platform, parties });
    });
  }
  return verifyForeign(ports, jws.value, { claims, tokenType, clientId, requestedType });
}

const FOREIGN_TYPES: Record<Exclude<Exchange["subjectTokenType"], typeof TXN_TOKEN>, ForeignTokenType> = {
  [ACCESS_TOKEN]: "access_token",
  [ID_TOKEN]: "id_token",
  [JWT]: "jwt",
};

function isForeignAccessToken(ports: Pick<Ports, "settings">, claims: JsonObject): boolean {
  const issuer = findIssuer(ports, claims);
  return issuer.ok && issuer.value.acceptAs.includes("access_token");
}

/** TXN-D-10, TXN-D-14: who and what it is for is told by its row, and its transaction by itself. */
function verifyTransaction(
  ports: OwnTokenPorts & { grantSigner: OwnKeys },
  jws: Jws,
): Awaitable<Result<ResolvedSubject, Refused>> {
  return whenOk(
    verifyOwn(ports, jws, "txn_token", findTransactionKey(ports, jws)),
    ({ subject, ...read }) => {
      const { claims } = jws;
      // The last of those that requested a token of this transaction requested this one.
      const replaced = requestersOf(claims).length - 1;
      return ok({ ...read, claims, subject: { ...subject, replaced } });
    },
  );
}

function verifyOwn(
  ports: OwnTokenPorts,
  jws: Jws,
  tokenType: "access_token" | "txn_token" = "access_token",
  key = findOwnKey(ports, jws),
): Awaitable<Result<ResolvedSubject, Refused>> {
  const own = verifyOwnToken(ports, jws, key);
  return whenReady(own, (verified): Awaitable<Result<ResolvedSubject, Refused>> => {
    if (!verified.ok) return withEndedJob(ports, jws, verified.error);
    const { issuer } = ports.settings();
    const { record, job } = verified.value;
    const read = readOwnSubject(
      issuer,
      defined<OwnSubject>({
        sub: record.subject,
        origin: record.origin,
        audiences: [record.audience],
        scopes: record.scope.split(" "),
        details: record.details,
        expiresAtSeconds: record.expiresAtSeconds,
        chain: record.chain,
        mayAct: record.mayAct,
        boundTo: record.confirmation,
        claims: record.claims,
      }),
      tokenType,
    );
    if (!read.ok) return read;
    const token = describeToken(ports, jws, tokenType);
    const parties = describeSubject(issuer, read.value.subject, token);
    const ancestors = [record.jti, ...record.ancestors];
    const root = { keys: record.endingKeys };
    const more = { ancestors, root, parties, job: jobOf(record), jobOnRecord: job };
    return ok(defined<ResolvedSubject>({ ...read.value, ...more }));
  });
}

/** A token that ended with its job: its holder is told so (JOB-D-14), which costs a look-up only then. */
function withEndedJob(
  { facts, jobs }: OwnTokenPorts,
  { claims }: Jws,
  refused: Refused,
): Awaitable<Result<never, Refused>> {
  if (refused.reason !== "token_revoked" || typeof claims.jti !== "string") return err(refused);
  return whenReady(facts.token(claims.jti), (found) => {
    const { jobId, jobIssuer } = found?.record ?? {};
    const job = jobId === undefined || jobIssuer !== undefined ? undefined : jobs.find(jobId);
    return whenReady(job, (one) =>
      err(one?.ended === undefined ? refused : { ...refused, isOfEndedJob: true }),
    );
  });
}

/** JOB-D-8: the job of a token of ours, by its row. */
export const jobOf = ({
  jobId: id,
  jobIssuer: iss,
  jobEndsAtSeconds,
}: TokenRecord): PresentedJob | undefined =>
  id === undefined ? undefined : defined<PresentedJob>({ id, iss, endsAtSeconds: jobEndsAtSeconds });

function verifyForeign(
  ports: ForeignTokenPorts,
  jws: Jws,
  presented: ForeignToken,
): Awaitable<Result<ResolvedSubject, Refused>> {
  const issuer = subjectIssuer(ports, presented);
  if (!issuer.ok) return issuer;
  const kind = checkSubjectKind(jws, presented.tokenType);
  if (!kind.ok) return kind;
  return whenOk(verifySigned(ports, issuer.value, issuer.value.types, jws), () =>
    whenOk(readForeignSubject(ports, issuer.value, presented), (read) => {
      const token = describeToken(ports, jws, presented.tokenType);
      return ok({ ...read, parties: describeSubject(ports.settings().issuer, read.subject, token) });
    }),
  );
}

/**
 * RFC8725-3.12-v1: tells the kinds of JWT of one issuer apart. A JWT whose `typ` says that it is an access token is no
 * ID token.
 */
function checkSubjectKind({ header, claims }: Jws, tokenType: ForeignTokenType): Result<undefined, Refused> {
  const isTyped = checkType(header, JWT_TYPES.accessToken).ok;
  const isIdToken = tokenType === "id_token";
  if (isIdToken && isTyped) return err({ reason: "jwt_type_refused" });
  const kind = checkKind(claims, isIdToken ? "idToken" : isTyped ? "typedAccessToken" : "subjectToken");
  return kind.ok ? kind : err({ reason: kind.error.kind });
}

/** Verifies that this issuer signed the token, as one of these types. */
export function verifySigned(
  ports: Pick<Ports, "issuers" | "verifier">,
  issuer: TrustedIssuer,
  types: TrustedIssuer["types"],
  jws: Jws,
): Awaitable<Result<undefined, Refused>> {
  const type = checkType(jws.header, types);
  if (!type.ok) return err({ reason: type.error.kind });
  // B8725-3.1-1: only the algorithms of this issuer are accepted.
  const algorithm = checkAlgorithm(jws.header, issuer.algorithms);
  if (!algorithm.ok) return err({ reason: algorithm.error.kind });
  return whenReady(ports.issuers.key(issuer.issuer, jws.header), (key) => {
    if (!key.ok) return err({ reason: `issuer_${key.error}` });
    return ports.verifier.verifyRepeated(jws, key.value)
      ? ok(undefined)
      : err({ reason: "signature_invalid" });
  });
}
