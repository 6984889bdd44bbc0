/** The interfaces between the flows and the world, the settings in force, and the one fault that has a name. */

import type { Span } from "./audit/query.ts";
import type { Consent, Origin } from "./policy/ask.ts";
import type {
  AuditQuery,
  AuditRecord,
  CheckpointRow,
  Entry,
  InitialToken,
  RegisteredClient,
  StoredConsent,
  TokenFacts,
  Unmet,
} from "./records.ts";
import type { Result } from "./result.ts";
import type { Client, KeySetPlace, Settings } from "./settings/settings.ts";
import type { Certificate } from "./spec/rfc5280.ts";
import type { Jws, JwsHeader } from "./spec/rfc7515.ts";
import type { Jwk } from "./spec/rfc7517.ts";
import type { JsonObject } from "./spec/rfc8259.ts";

/** The store did not answer in time, or its answer is unknown: http turns it into 503, never into a token. */
export class StoreUnavailable extends Error {
  override name = "StoreUnavailable";
}

export interface Clock {
  nowMs(): number;
}

export interface Random {
  /** 128 random bits or more, base64url: `jti`, event and consent ids (RFC6749-10.10-2). */
  id(): string;
  /** 256 random bits, base64url: secrets of clients (RFC6749-10.10-3). */
  secret(): string;
}

export interface Hash {
  /** SHA-256 of bytes, or of a text in UTF-8; base64url. */
  sha256(data: string | Uint8Array): string;
  /** Compares two digests in constant time. */
  equal(a: string, b: string): boolean;
}

// --- store --------------------------------------------------------------------------------------------------

export interface Facts {
  token(jti: string): Promise<TokenFacts | undefined>;
  /** Every consent of this subject for this actor that is neither withdrawn nor expired. */
  consents(origin: Origin, actor: string, nowSeconds: number): Promise<readonly Consent[]>;
}

export interface Registrations {
  /** Of a client that registered itself and is not removed. */
  client(clientId: string): Promise<RegisteredClient | undefined>;
  /** Whatever its state. */
  initialToken(digest: string): Promise<InitialToken | undefined>;
}

export interface Consents {
  find(id: string): Promise<StoredConsent | undefined>;
  /** Withdrawn and expired ones too, by id; of one subject if it is named; those behind an id, so many of them. */
  list(origin?: Origin, page?: { afterId?: string; limit: number }): Promise<readonly StoredConsent[]>;
}

export interface Journal {
  /**
   * Writes the event, the token's row, the spent `jti` and the change together, durably, if every guard holds;
   * else nothing, and the guards that failed come back. Throws StoreUnavailable when the outcome is unknown.
   */
  record(entry: Entry): Promise<Result<{ eventId: string }, readonly Unmet[]>>;
}

// --- audit trail --------------------------------------------------------------------------------------------

/** The audit trail as it is read: what is found is written, and what was written first is found first. */
export interface AuditTrail {
  /** The last record of every log, by the names of the logs. */
  heads(): Promise<readonly { log: string; seq: number; hash: string }[]>;
  /** In the order of their places. */
  find(query: AuditQuery): Promise<readonly AuditRecord[]>;
  /** The smallest time of any record in these stretches. */
  earliestMs(spans: readonly Span[]): Promise<number | undefined>;
  /** By log and size; of each log that is named those that are larger. */
  checkpoints(after: ReadonlyMap<string, number>, limit: number): Promise<readonly CheckpointRow[]>;
}

/** Failures before authentication; they are counted, not recorded one by one. */
export interface AuthFailures {
  note(source: string, endpoint: string, reason: string): void;
}

export interface Throttle {
  /** Seconds that this source has to wait before it may try again, in all or as this client; 0: none. */
  waitSeconds(source: string, clientId: string | undefined): number;
  failed(source: string, clientId: string | undefined): void;
  /** One request of a client that has proven itself: seconds to wait, or 0 and it is counted. */
  spend(clientId: string): number;
  /** One request to `/register` with this initial access token or of this client: seconds to wait, or 0 and it is counted. */
  manage(id: string): number;
  /** One registration without an initial access token: seconds to wait, or 0 and it is counted. */
  register(source: string): number;
}

export interface Clients {
  /** Configured, made by the operator, or registered: not by the URL of a document. */
  find(clientId: string): Promise<Client | undefined>;
}

/** Why there is no client or key behind a URL that a client brought; `waitSeconds`: there was no budget to look. */
export type FetchRefused = { reason: string; waitSeconds?: number };

/** Clients by the URL of their metadata document. `source` is the address that asks. */
export interface ClientDocuments {
  find(url: string, source: string): Promise<Result<Client, FetchRefused>>;
}

/** Keys at a URL that a client brought, fetched when they are needed. */
export interface FetchedKeys {
  key(where: KeySetPlace, header: JwsHeader, source: string): Promise<Result<Jwk, FetchRefused>>;
}

/** RFC7592-5-4: derived, so that the current one can be shown again and none is stored. */
export interface RegistrationTokens {
  of(clientId: string, generation: number): string;
}

// --- keys ---------------------------------------------------------------------------------------------------
// Signing and verifying may answer at once or later, as the implementation likes: callers always await them.

export interface Verifier {
  /** Whether the signature is this key's over the received bytes, with the algorithm of the header. */
  verify(jws: Jws, key: Jwk): boolean | Promise<boolean>;
}

export type KeyFailure = "source_unknown" | "source_unavailable" | "key_unknown";

/** Public keys by the name of who vouches for them: a trust domain, an issuer, or a client for itself. */
export interface KeySource {
  key(name: string, header: JwsHeader): Promise<Result<Jwk, KeyFailure>>;
}

/**
 * How old the copy is and what it is worth: the last look brought it, or it only outlives one that failed, or there
 * is none to serve from.
 */
export type SourceState = { state: "fresh" | "last_good" | "none"; ageSeconds?: number };

export interface Bundles extends KeySource {
  /** DER of the X.509 authorities of this one trust domain (SFD-4.2-4). */
  anchors(trustDomain: string): Promise<Result<readonly Uint8Array[], KeyFailure>>;
  /** An early look at the bundle, for a certificate that no authority in it has signed; limited and shared. */
  lookAgain(trustDomain: string): Promise<void>;
}

export interface Paths {
  /**
   * The certificates from the leaf that the peer presented to one of these anchors, every signature and every
   * rule of RFC 5280 section 6 checked. `issuer_unknown` where none of the anchors is behind it.
   */
  verify(
    presented: readonly Uint8Array[],
    anchors: readonly Uint8Array[],
    nowSeconds: number,
  ): Result<readonly Certificate[], { kind: string }>;
}

export type SigningKey = { kid: string; alg: string };

export interface Signer {
  /** The key that signs now with this algorithm; none is a fault. */
  current(alg: string): SigningKey;
  /** The compact JWS; a key that does not sign (any more) is a fault. */
  sign(key: SigningKey, typ: string, claims: JsonObject): string | Promise<string>;
  /** Our public keys, as `/jwks` shows them. */
  published(): readonly JsonObject[];
  /** The public key behind a `kid` of ours that still verifies. */
  own(header: JwsHeader): Jwk | undefined;
}

// --- all of it ----------------------------------------------------------------------------------------------

export type Ports = {
  clock: Clock;
  random: Random;
  hash: Hash;
  settings: () => Settings;
  clients: Clients;
  clientDocuments: ClientDocuments;
  registrations: Registrations;
  registrationTokens: RegistrationTokens;
  facts: Facts;
  consents: Consents;
  journal: Journal;
  /** With the public keys of its checkpoints. */
  audit: AuditTrail & { keys(): readonly JsonObject[] };
  authFailures: AuthFailures;
  throttle: Throttle;
  verifier: Verifier;
  signer: Signer;
  /** Of JWT authorization grants, with keys of its own. */
  grantSigner: Signer;
  paths: Paths;
  /** Trust bundles by trust domain. */
  bundles: Bundles;
  /** Keys of trusted issuers by `iss`. */
  issuers: KeySource;
  /** Keys of configured clients that publish theirs, by `client_id`. */
  clientKeys: KeySource;
  /** Keys of clients that brought the URL themselves. */
  fetchedKeys: FetchedKeys;
};
