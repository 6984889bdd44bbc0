/** The subject token of an exchange, verified by the rules of its declared type (RFC8693-2.1-20): ours, or a trusted issuer's. */
import type { TokenReason } from "../audit/reasons.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { Exchange } from "../spec/rfc8693.ts";
import { ACCESS_TOKEN, ID_TOKEN } from "../spec/rfc8693.ts";
import { checkAlgorithm, checkType } from "../spec/rfc8725.ts";
import type { ResolvedSubject } from "./ask/order.ts";
import type { ForeignToken, OwnSubject } from "./ask/subject.ts";
import { readForeignSubject, readOwnSubject, subjectIssuer } from "./ask/subject.ts";
import { describeSubject, describeToken } from "./audit-fields.ts";
import { verifyOwnToken } from "./verify-own-token.ts";

type Refused = { reason: TokenReason };

/** `clientId` is the client that presents it. */
export async function verifySubject(
  ports: Ports,
  { subjectToken, subjectTokenType, requestedType }: Exchange,
  clientId: string,
): Promise<Result<ResolvedSubject, Refused>> {
  const jws = parseJws(subjectToken);
  if (!jws.ok) return err({ reason: jws.error.kind });
  // RFC8693-3-3: an access token is ours; a foreign one is not tried under another type.
  if (subjectTokenType === ACCESS_TOKEN) return verifyOwn(ports, jws.value);
  const tokenType = subjectTokenType === ID_TOKEN ? "id_token" : "jwt";
  const { claims } = jws.value;
  return verifyForeign(ports, jws.value, { claims, tokenType, clientId, requestedType });
}

async function verifyOwn(ports: Ports, jws: Jws): Promise<Result<ResolvedSubject, Refused>> {
  const { issuer } = ports.settings();
  const own = await verifyOwnToken(ports, jws);
  if (!own.ok) return own;
  const { jti, record } = own.value;
  const read = readOwnSubject(
    issuer,
    defined<OwnSubject>({
      sub: record.subject,
      origin: record.origin,
      audiences: [record.audience],
      scopes: record.scope.split(" "),
      expiresAtSeconds: record.expiresAtSeconds,
      chain: record.chain,
      mayAct: record.mayAct,
      boundTo: record.confirmation,
    }),
  );
  if (!read.ok) return read;
  const token = describeToken(ports, jws, "access_token");
  const parties = describeSubject(issuer, read.value.subject, token);
  const root = { keys: record.endingKeys };
  return ok({ ...read.value, ancestors: [jti, ...record.ancestors], root, parties });
}

async function verifyForeign(
  ports: Ports,
  jws: Jws,
  presented: ForeignToken,
): Promise<Result<ResolvedSubject, Refused>> {
  const issuer = subjectIssuer(ports, presented);
  if (!issuer.ok) return issuer;
  const verified = await verifyForeignToken(ports, issuer.value, issuer.value.types, jws);
  if (!verified.ok) return verified;
  const read = await readForeignSubject(ports, issuer.value, presented);
  if (!read.ok) return read;
  const token = describeToken(ports, jws, presented.tokenType);
  const parties = describeSubject(ports.settings().issuer, read.value.subject, token);
  return ok({ ...read.value, parties });
}

/** That this issuer signed it, as one of these types. */
export async function verifyForeignToken(
  ports: Ports,
  issuer: TrustedIssuer,
  types: TrustedIssuer["types"],
  jws: Jws,
): Promise<Result<undefined, Refused>> {
  const type = checkType(jws.header, types);
  if (!type.ok) return err({ reason: type.error.kind });
  // B8725-3.1-1: the algorithms of this issuer, no others.
  const algorithm = checkAlgorithm(jws.header, issuer.algorithms);
  if (!algorithm.ok) return err({ reason: algorithm.error.kind });
  const key = await ports.issuers.key(issuer.issuer, jws.header);
  if (!key.ok) return err({ reason: `issuer_${key.error}` });
  if (!(await ports.verifier.verify(jws, key.value))) return err({ reason: "signature_invalid" });
  return ok(undefined);
}
