/** What the store keeps: rows of tokens, consents, clients and the audit trail, and what may be written at once. */

import type { AuditEvent } from "./audit/event.ts";
import type { AuditPlace, Filter, Listing } from "./audit/query.ts";
import type { Consent, Origin } from "./policy/ask.ts";
import type { SecretDigest } from "./settings/settings.ts";
import type { Ceiling } from "./spec/rfc7591.ts";
import type { JsonObject } from "./spec/rfc8259.ts";
import type { Hop } from "./spec/rfc8693.ts";

/** The row of every token we issue, kept until it has expired. */
export type TokenRecord = {
  jti: string;
  clientId: string;
  subject: string;
  origin: Origin;
  audience: string;
  scope: string;
  /** The whole chain, current actor first, whatever the target may see of it. */
  chain: readonly Required<Hop>[];
  mayAct?: JsonObject;
  /** `jti` of every token of ours that this one descends from, nearest first. */
  ancestors: readonly string[];
  ruleId: string;
  consentId?: string;
  issuedAtSeconds: number;
  expiresAtSeconds: number;
};

export type TokenFacts = {
  record: TokenRecord;
  /** Neither it nor an ancestor is revoked, and no consent they were issued under is withdrawn. */
  live: boolean;
};

/** What must still hold at the moment of writing. */
export type Guard =
  /** No event has spent it; writing the entry spends it (RFC7523-3-14). */
  | { kind: "jti_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** The same of a JWT authorization grant (IDC-5.5-2). */
  | { kind: "grant_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** Each has its row, none is revoked, no consent behind one is withdrawn. */
  | { kind: "tokens_live"; jtis: readonly string[] }
  | { kind: "consent_current"; id: string; version: number; nowSeconds: number };

export type StoredConsent = Consent & { withdrawnAtSeconds?: number };

/**
 * Adding an id that exists, replacing by another version than the next one of what stands, and withdrawing one that
 * is not there to withdraw are a failed `consent_current`. Subject and actor of a consent never change.
 */
export type ConsentChange = { add: Consent } | { replace: Consent } | { withdraw: string; atSeconds: number };

/** A client that registered itself: its metadata as recorded, and what it may never exceed. */
export type RegisteredClient = {
  clientId: string;
  version: number;
  metadata: JsonObject;
  registrationClass: string;
  ceiling: Ceiling;
  /** Counts the registration access tokens; only the newest is good (RFC7592-A.1-2). */
  tokenGeneration: number;
  secrets: readonly SecretDigest[];
  issuedAtSeconds: number;
};

/** An initial access token (RFC7591-3-3), made on the host; only its digest is kept. */
export type InitialToken = {
  id: string;
  digest: string;
  registrationClass: string;
  ceiling: Ceiling;
  uses: number;
  usesMax: number;
  createdAtSeconds: number;
  expiresAtSeconds: number;
  revokedAtSeconds?: number;
};

/**
 * What may not hold: the initial token is used up, ended or revoked (`initial_token_usable`); there are as many
 * clients of its class as may be (`registrations_below`); the client is gone or of another version, or a secret is taken
 * (`registration_current`). A client that is removed keeps its id and nothing else.
 */
export type RegistrationChange =
  | { register: RegisteredClient; initialTokenId?: string; clientsMax: number }
  /** Replaces metadata, secrets and generation; `version` is the next one. */
  | { update: RegisteredClient; atSeconds: number }
  /** Where `version` is given, only if that one stands; where `unusedSince` is given, only if it had no token since (and none at all, if it never had one). */
  | { remove: string; version?: number; unusedSince?: number; atSeconds: number };

export type Entry = {
  event: AuditEvent;
  token?: TokenRecord;
  guards?: readonly Guard[];
  consent?: ConsentChange;
  registration?: RegistrationChange;
};

/** What did not hold at the moment of writing. */
export type Unmet = Guard["kind"] | "initial_token_usable" | "registrations_below" | "registration_current";

/** `body` is the exact text that was hashed. */
export type AuditRecord = AuditPlace & { body: string };

export type AuditQuery = Omit<Filter, "lineageOf"> & Listing;

export type CheckpointRow = { log: string; treeSize: number; timeMs: number; jws: string };
