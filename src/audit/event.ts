/**
 * The audit record: own design (AUDIT-D), after RFC 8417 and RFC 9162.
 * Covers the fields of one event, and the bytes that are hashed into the chain of one log.
 */
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import type { Hop } from "../spec/rfc8693.ts";
import { canonicalize } from "../spec/rfc8785.ts";

export type EventType =
  | "client.auth_failed"
  | "client.registered"
  | "client.updated"
  | "client.disabled"
  | "client.removed"
  | "client.registration_denied"
  | "initial_access_token.created"
  | "initial_access_token.revoked"
  | "replay.detected"
  | "token.issued"
  | "token.denied"
  | "token_exchange.delegation"
  | "token_exchange.impersonation"
  | "token_exchange.denied"
  | "grant.redeemed"
  | "grant.denied"
  | "consent.recorded"
  | "consent.withdrawn"
  | "config.changed"
  | "admin.access"
  | "key.created"
  | "trust_bundle.updated"
  | "trust_bundle.failed"
  | "key_set.updated"
  | "key_set.failed"
  | "log.genesis"
  | "log.checkpoint"
  | "log.pruned"
  | "log.verification_failed";

/** One token as the audit trail knows it: never the token, always enough to find it again. */
export type TokenNote = {
  type: string;
  jti?: string;
  iat?: number;
  exp?: number;
  aud?: readonly string[];
  scope?: string;
  client_id?: string;
  /** SHA-256 of the signing input, so that another spelling of the signature is the same token. */
  fingerprint: string;
};

export type AuditEvent = {
  type: EventType;
  outcome: "allow" | "deny" | "error";
  /** Stable machine code, precise; it never reaches the caller. */
  reason: string;
  request?: { id: string; endpoint: string; source_ip: string };
  client?: {
    client_id: string;
    auth_method: string;
    /** How it came to be (CIMD-7.1-2); absent: a workload with no registration. */
    source?: string;
    workload?: string;
    /** The key, the audience and the `jti` of the assertion; the thumbprint of the certificate. */
    kid?: string;
    aud?: string;
    jti?: string;
    x5t?: string;
  };
  mode?: "client_credentials" | "delegation" | "impersonation" | "redemption";
  subject?: { iss: string; sub: string; kind: "user" | "workload"; token: TokenNote };
  actor?: { iss: string; sub: string; token: TokenNote };
  /** The whole incoming chain, current actor first. */
  chain?: readonly Required<Hop>[];
  may_act?: JsonObject;
  requested?: {
    audience: readonly string[];
    resource: readonly string[];
    scope?: string;
    requested_token_type?: string;
  };
  policy?: { digest: string; rule_id?: string; consent?: string; trace?: Json };
  granted?: {
    jti: string;
    issued_token_type?: string;
    token_type: string;
    sub: string;
    aud: string;
    scope: string;
    exp: number;
    act_depth: number;
    kid: string;
    /** `jti` of the tokens of ours that this one came from, nearest first. */
    parent_jti: readonly string[];
  };
  error?: { error: string; status: number };
  /** How many alike events one record stands for; only for failures before authentication. */
  count?: number;
  /** What an event that is no token decision is about. */
  detail?: JsonObject;
};

/** Where an event stands: the writer of the log knows it, nobody else. */
export type Place = { log: string; seq: number; id: string; timeMs: number; prev: string };

export const GENESIS_PREV = "0".repeat(64);

/**
 * The exact text that is stored and hashed: hash = SHA-256(0x00 || UTF-8 of this), hex
 * (RFC9162-2.1.1-1, RFC8785-3.2.3-1). `prev` is the hash of the event before it in the same log.
 */
export function sealEvent(event: AuditEvent, place: Place): string {
  const { log, seq, id, timeMs, prev } = place;
  const time = new Date(timeMs).toISOString();
  return canonicalize({ ...event, v: 1, log, seq, id, time, prev } as unknown as Json);
}
