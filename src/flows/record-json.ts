/** Records of the store as the endpoints and the commands show them: under the wire names of OAuth, times in seconds. */

import type { StoredConsent, TokenRecord } from "../records.ts";
import { defined } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { type Detail, detailsJson } from "../spec/rfc9396.ts";
import type { ConsentState } from "./consents.ts";
import type { Ended } from "./endings.ts";
import type { JobStatus } from "./jobs.ts";

export type ConsentJson = {
  id: string;
  version: number;
  subject: StoredConsent["origin"];
  actor: string;
  targets: readonly string[];
  scope: string;
  authorization_details?: readonly Detail[];
  expires_at?: number;
  withdrawn_at?: number;
  /** The job inside which alone it counts; of another server's, with its issuer. */
  job?: string;
  job_issuer?: string;
  /** Whether an exchange would find it, and else why not. */
  state: ConsentState;
};

export function consentJson(consent: StoredConsent, state: ConsentState): ConsentJson {
  const { id, version, origin, actor, targets, scopes, details, expiresAtSeconds, withdrawnAtSeconds } =
    consent;
  return defined({
    id,
    version,
    subject: origin,
    actor,
    targets,
    scope: scopes.join(" "),
    authorization_details: details,
    expires_at: expiresAtSeconds,
    withdrawn_at: withdrawnAtSeconds,
    job: consent.jobId,
    job_issuer: consent.jobIssuer,
    state,
  });
}

export type TokenJson = {
  jti: string;
  client_id: string;
  subject: TokenRecord["origin"];
  sub: string;
  aud: string;
  scope: string;
  authorization_details?: readonly Detail[];
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
    authorization_details: record.details,
    chain,
    rule: ruleId,
    consent: consentId,
    parents: ancestors,
    iat: record.issuedAtSeconds,
    exp: record.expiresAtSeconds,
  });
}

export const endedJson = ({
  count,
  more,
  held,
  cutOffMs,
  acceptedUntilSeconds,
  streams,
  eventId,
}: Ended): JsonObject =>
  defined<JsonObject>({
    ended: count,
    more,
    // Of a user who was ended: families of refresh tokens, and sessions here.
    ...held,
    cut_off_ms: cutOffMs,
    accepted_until: acceptedUntilSeconds,
    streams: streams.length === 0 ? undefined : [...streams],
    event: eventId,
  });

/** JOB-D-20: a job with its bounds, what there is of it, and once it is over, whether its end is known everywhere. */
export function jobJson(of: JobStatus): JsonObject {
  const { job, ended, state, asOfSeconds, settled, held, open, partners, outside } = of;
  const { notAfterSeconds, targets, scopes, details, agents, maxTokens, maxDepth } = job.bounds;
  return defined<JsonObject>({
    id: job.id,
    title: job.title,
    subject: { ...job.origin },
    client_id: job.clientId,
    agent: job.actor,
    approved_by: job.approvedBy,
    created_at: job.createdAtSeconds,
    not_after: notAfterSeconds,
    targets: targets && [...targets],
    scope: scopes?.join(" "),
    authorization_details: detailsJson(details),
    agents: agents && [...agents],
    max_tokens: maxTokens,
    max_depth: maxDepth,
    issued: job.issued,
    state,
    ended_at: ended && Math.floor(ended.atMs / 1000),
    reason: ended?.reason,
    event: ended?.eventId,
    as_of: asOfSeconds,
    settled: state === "living" ? undefined : settled,
    held: { ...held },
    open: open.map(({ target, tokens, untilSeconds, told }) => ({
      target,
      tokens,
      until: untilSeconds,
      told,
    })),
    partners: partners.map(({ issuer, grants, untilSeconds, told }) => ({
      issuer,
      grants,
      until: untilSeconds,
      told,
    })),
    outside: {
      consents: [...outside.consents],
      grants: [...outside.grants],
      rules: outside.rules.map(({ id, targets, scopes }) => ({ id, targets, scope: scopes.join(" ") })),
    },
  });
}
