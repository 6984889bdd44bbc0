/** The interfaces between the flows and the world, the settings in force, and the one fault that has a name. */
import type { Consent, Origin } from "./policy/decide.ts";
import type { PolicySet } from "./policy/rules.ts";
import type { Result } from "./result.ts";
import type { AuditEvent } from "./spec/audit.ts";
import type { AuditPlace, Filter, Listing, Span } from "./spec/audit-query.ts";
import type { JsonObject } from "./spec/json.ts";
import type { Certificate } from "./spec/rfc5280.ts";
import type { Jws, JwsHeader } from "./spec/rfc7515.ts";
import type { Jwk } from "./spec/rfc7517.ts";
import type { Hop } from "./spec/rfc8693.ts";
import type { ExpectedSubject } from "./spec/rfc8705.ts";
import type { Bundle } from "./spec/spiffe/bundle.ts";

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
}

export interface Hash {
  /** SHA-256 of bytes, or of a text in UTF-8; base64url. */
  sha256(data: string | Uint8Array): string;
  /** Compares two digests in constant time. */
  equal(a: string, b: string): boolean;
}

// --- settings -----------------------------------------------------------------------------------------------

/** SHA-256 of a secret, base64url; several are valid at once, so that one can be replaced without an outage. */
export type SecretDigest = { digest: string; expiresAtSeconds?: number };

/** A trusted issuer that vouches for a client: its assertion must carry each of these claims (RFC7523-3-2). */
export type Voucher = { issuer: string; claims: ReadonlyMap<string, string> };

/** How a client proves itself: one way, the registered one. */
export type ClientAuth =
  | { method: "client_secret_basic" | "client_secret_post"; secrets: readonly SecretDigest[] }
  | { method: "private_key_jwt"; keys: readonly Jwk[] }
  | { method: "private_key_jwt"; jwksUri: RemoteDocument }
  | { method: "private_key_jwt"; vouchers: readonly Voucher[] }
  /** A SPIFFE ID, or a prefix of SPIFFE IDs that ends in a slash and a star. */
  | { method: "spiffe_jwt" | "spiffe_x509"; spiffeId: string }
  | { method: "tls_client_auth"; subject: ExpectedSubject; anchors: readonly Uint8Array[] }
  | { method: "self_signed_tls_client_auth"; certificates: readonly Certificate[] };

/** One OAuth client, from the configuration or from the store. */
export type Client = {
  clientId: string;
  auth: ClientAuth;
  grantTypes: readonly string[];
  /** The SPIFFE ID that this client acts as, if the operator gave it one. */
  workload?: string;
  /** Whether its own access token names it as actor, beside the workload that the operator gave it. */
  actorAccessToken?: boolean;
  defaultTarget?: string;
};

export type TrustDomain = {
  name: string;
  /** Which SPIFFE IDs are clients with no registration: all, those under a pattern, or none. */
  admit: "all" | "none" | readonly string[];
  requireClientId: boolean;
  bundle: { file: string } | RemoteDocument | SpiffeEndpoint;
};

/** A document that the operator told us to fetch. */
export type RemoteDocument = {
  url: string;
  /** Networks in private space that this URL may lead to, as CIDR. */
  privateNetworks: readonly string[];
  /** PEM of a private authority that vouches for the server, instead of the system's. */
  ca?: string;
};

/**
 * SFD-5.2.2.2-1: a bundle endpoint that proves itself by an SVID of the trust domain whose bundle it serves; until
 * the first one was fetched, under the authorities of a bundle that the operator has.
 */
export type SpiffeEndpoint = Pick<RemoteDocument, "url" | "privateNetworks"> & {
  endpointSpiffeId: string;
  bootstrap: Bundle;
};

/** How the `sub` of a foreign issuer becomes ours, so that two issuers never meet in one (RFC7519-4.1.2-v1). */
export type SubjectMapping =
  /** As it is, but never what another issuer's subjects are mapped to. */
  | { kind: "keep"; reservedPrefixes: readonly string[]; reserved: ReadonlySet<string> }
  | { kind: "prefix"; prefix: string }
  | { kind: "table"; table: ReadonlyMap<string, string> };

export type TrustedIssuer = {
  issuer: string;
  keys: RemoteDocument;
  audiences: readonly string[];
  acceptAs: readonly ("jwt" | "id_token")[];
  types: readonly (string | undefined)[];
  algorithms: readonly string[];
  subjects: SubjectMapping;
  /** What a token without `scope` permits; empty: nothing. */
  scopes: readonly string[];
  maxAgeSeconds?: number;
  /** Whether it vouches for clients, and if a token that does may be sent again until it is this old. */
  vouches?: { maxAgeSeconds: number; reusable: boolean };
};

/** An issuer whose users manage their consents here, by clients on its list, with these types of token. */
export type ConsentIssuer = { clients: ReadonlySet<string>; types: readonly (string | undefined)[] };

export type Settings = {
  issuer: string;
  tokenEndpoint: string;
  /** The values that name us as audience of an assertion; exactly one must stand alone in `aud`. */
  assertionAudiences: readonly string[];
  skewSeconds: number;
  clients: ReadonlyMap<string, Client>;
  /** Clients by the issuer that vouches for them. */
  vouchedClients: ReadonlyMap<string, readonly Client[]>;
  /** Where clients that authenticate by certificate go, if that is a listener of its own (RFC8705-5-1). */
  mtlsOrigin?: string;
  trustDomains: ReadonlyMap<string, TrustDomain>;
  trustedIssuers: ReadonlyMap<string, TrustedIssuer>;
  consentIssuers: ReadonlyMap<string, ConsentIssuer>;
  policy: PolicySet;
};

// --- store --------------------------------------------------------------------------------------------------

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

export interface Facts {
  token(jti: string): Promise<TokenFacts | undefined>;
  /** Every consent of this subject for this actor that is neither withdrawn nor expired. */
  consents(origin: Origin, actor: string, nowSeconds: number): Promise<readonly Consent[]>;
}

/** What must still hold at the moment of writing. */
export type Guard =
  /** No event has spent it; writing the entry spends it (RFC7523-3-14). */
  | { kind: "jti_fresh"; issuer: string; jti: string; expiresAtSeconds: number }
  /** Each has its row, none is revoked, no consent behind one is withdrawn. */
  | { kind: "tokens_live"; jtis: readonly string[] }
  | { kind: "consent_current"; id: string; version: number; nowSeconds: number };

export type StoredConsent = Consent & { withdrawnAtSeconds?: number };

/**
 * Adding an id that exists, replacing by another version than the next one of what stands, and withdrawing one that
 * is not there to withdraw are a failed `consent_current`. Subject and actor of a consent never change.
 */
export type ConsentChange = { add: Consent } | { replace: Consent } | { withdraw: string; atSeconds: number };

export type Entry = {
  event: AuditEvent;
  token?: TokenRecord;
  guards?: readonly Guard[];
  consent?: ConsentChange;
};

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
  record(entry: Entry): Promise<Result<{ eventId: string }, readonly Guard["kind"][]>>;
}

// --- audit trail --------------------------------------------------------------------------------------------

/** `body` is the exact text that was hashed. */
export type AuditRecord = AuditPlace & { body: string };

export type AuditQuery = Omit<Filter, "lineageOf"> & Listing;

export type CheckpointRow = { log: string; treeSize: number; timeMs: number; jws: string };

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

/** Where checkpoints go so that the database cannot take them back. */
export type WitnessPlace =
  | "stdout"
  | { file: string }
  /** `authorization` is the value of that field, for a sink that wants to know who sends. */
  | { sink: RemoteDocument; authorization?: string };

/** Failures before authentication; they are counted, not recorded one by one. */
export interface AuthFailures {
  note(source: string, endpoint: string, reason: string): void;
}

/** Tokens each second, and how many may be spent at once. */
export type Rate = { perSecond: number; burst: number };
export type Rates = Record<"failuresBySource" | "failuresByClient" | "requestsByClient", Rate>;

export interface Throttle {
  /** Seconds that this source has to wait before it may try again, in all or as this client; 0: none. */
  waitSeconds(source: string, clientId: string | undefined): number;
  failed(source: string, clientId: string | undefined): void;
  /** One request of a client that has proven itself: seconds to wait, or 0 and it is counted. */
  spend(clientId: string): number;
}

export interface Clients {
  find(clientId: string): Promise<Client | undefined>;
}

// --- keys ---------------------------------------------------------------------------------------------------

export interface Verifier {
  /** Whether the signature is this key's over the received bytes, with the algorithm of the header. */
  verify(jws: Jws, key: Jwk): Promise<boolean>;
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
  current(alg: string): SigningKey;
  sign(key: SigningKey, typ: string, claims: JsonObject): Promise<string>;
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
  facts: Facts;
  consents: Consents;
  journal: Journal;
  /** With the public keys of its checkpoints. */
  audit: AuditTrail & { keys(): readonly JsonObject[] };
  authFailures: AuthFailures;
  throttle: Throttle;
  verifier: Verifier;
  signer: Signer;
  paths: Paths;
  /** Trust bundles by trust domain. */
  bundles: Bundles;
  /** Keys of trusted issuers by `iss`. */
  issuers: KeySource;
  /** Keys of clients that publish theirs, by `client_id`. */
  clientKeys: KeySource;
};
