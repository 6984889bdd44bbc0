/** RFC 7591 2.3: a software statement of an issuer that is trusted for them, from its text to its claims. */
import type { Reason } from "../audit/reasons.ts";
import type { BasePorts, Ports } from "../ports.ts";
import { err, ok, type Result } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import { parseJws } from "../spec/rfc7515.ts";
import { checkAudienceContains, checkTimes } from "../spec/rfc7519.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { checkKind, JWT_TYPES } from "../spec/rfc8725.ts";
import { findIssuer } from "./order/subject.ts";
import { verifySigned } from "./subject-token.ts";

export type StatementPorts = BasePorts & Pick<Ports, "issuers" | "verifier">;

export type StatementFailure = {
  kind: "software_statement_invalid" | "software_statement_unapproved";
  reason: Reason;
};

/** RFC7591-3.1.1-1: statements are ignored where no issuer is trusted for them. */
export const readsStatements = ({ settings }: Pick<Ports, "settings">): boolean =>
  [...settings().trustedIssuers.values()].some(({ statements }) => statements);

export async function verifyStatement(
  ports: StatementPorts,
  compact: string,
): Promise<Result<JsonObject, StatementFailure>> {
  const invalid = (reason: Reason) => err({ kind: "software_statement_invalid", reason } as const);
  const jws = parseJws(compact);
  if (!jws.ok) return invalid(jws.error.kind);
  const { claims } = jws.value;
  // RFC7591-2.3-1, RFC7591-3.2.2-7: it must name an issuer that the operator approved for statements.
  if (typeof claims.iss !== "string") return invalid("issuer_missing");
  const issuer = findIssuer(ports, claims);
  if (!issuer.ok || !issuer.value.statements) {
    return err({ kind: "software_statement_unapproved", reason: "issuer_not_approved" });
  }
  const kind = checkKind(claims, "softwareStatement");
  if (!kind.ok) return invalid(kind.error.kind);
  const verified = await verifySigned(ports, issuer.value, JWT_TYPES.softwareStatement, jws.value);
  if (!verified.ok) return invalid(verified.error.reason);
  // RFC8725-3.12-v1: where other JWTs of the issuer are accepted too, `software_id` tells a statement from them.
  if (!isSoleUse(issuer.value) && typeof claims.software_id !== "string") return invalid("software_missing");
  const { issuer: us, clockSkewSeconds: skewSeconds } = ports.settings();
  // `exp` and `aud` are optional in a statement, and enforced where they are present.
  const nowSeconds = ports.clock.nowSeconds();
  const times = checkTimes({ exp: nowSeconds + 1, ...claims }, { nowSeconds, skewSeconds });
  if (!times.ok) return invalid(times.error.kind);
  if (claims.aud !== undefined) {
    const meant = checkAudienceContains(claims, [us, `${us}/register`]);
    if (!meant.ok) return invalid(meant.error.kind);
  }
  return ok(claims);
}

const isSoleUse = ({ acceptAs, vouches, grants, workloads }: TrustedIssuer): boolean =>
  acceptAs.length === 0 && vouches === undefined && grants === undefined && workloads.length === 0;
