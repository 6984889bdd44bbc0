/** Records of the store as the endpoints and the commands show them: under the wire names of OAuth, times in seconds. */
import type { StoredConsent, TokenRecord } from "../records.ts";
import { defined } from "../result.ts";

export type ConsentJson = {
  id: string;
  version: number;
  subject: StoredConsent["origin"];
  actor: string;
  targets: readonly string[];
  scope: string;
  expires_at?: number;
  withdrawn_at?: number;
};

export function consentJson(consent: StoredConsent): ConsentJson {
  const { id, version, origin, actor, targets, scopes, expiresAtSeconds, withdrawnAtSeconds } = consent;
  return defined({
    id,
    version,
    subject: origin,
    actor,
    targets,
    scope: scopes.join(" "),
    expires_at: expiresAtSeconds,
    withdrawn_at: withdrawnAtSeconds,
  });
}

export type TokenJson = {
  jti: string;
  client_id: string;
  subject: TokenRecord["origin"];
  sub: string;
  aud: string;
  scope: string;
  /** Current actor first. */
  chain: TokenRecord["chain"];
  rule: string;
  consent?: string;
  parents: readonly string[];
  iat: number;
  exp: number;
};

export function tokenJson(record: TokenRecord): TokenJson {
  const { jti, clientId, origin, subject, audience, scope, chain, ruleId, consentId, ancestors } = record;
  return defined<TokenJson>({
    jti,
    client_id: clientId,
    subject: origin,
    sub: subject,
    aud: audience,
    scope,
    chain,
    rule: ruleId,
    consent: consentId,
    parents: ancestors,
    iat: record.issuedAtSeconds,
    exp: record.expiresAtSeconds,
  });
}
