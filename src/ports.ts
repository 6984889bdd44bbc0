/** The interfaces between the flows and the world, the settings in force, and the one fault that has a name. */
import type { Consent, Origin } from "./policy/decide.ts";
import type { PolicySet } from "./policy/rules.ts";
import type { Result } from "./result.ts";
import type { AuditEvent } from "./spec/audit.ts";
import type { JsonObject } from "./spec/json.ts";
import type { Jws, JwsHeader } from "./spec/rfc7515.ts";
import type { Jwk } from "./spec/rfc7517.ts";
import type { Hop } from "./spec/rfc8693.ts";

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
  /** SHA-256 of the UTF-8 text, base64url. */
  sha256(text: string): string;
  /** Compares two digests in constant time. */
  equal(a: string, b: string): boolean;
}

// --- settings -----------------------------------------------------------------------------------------------

export type SecretMethod = "client_secret_basic" | "client_secret_post";

/** One OAuth client as the operator configured it. */
export type Client = {
  clientId: string;
  method: SecretMethod;
  /** SHA-256 of each valid secret, base64url. */
  secretDigests: readonly string[];
  grantTypes: readonly string[];
  /** The SPIFFE ID that this client acts as, if the operator gave it one. */
  workload?: string;
  defaultTarget?: string;
};

export type TrustDomain = {
  name: string;
  /** Which SPIFFE IDs are clients with no registration: all, those under a pattern, or none. */
  admit: "all" | "none" | readonly string[];
  requireClientId: boolean;
  bundle: { file: string } | RemoteDocument;
};

/** A document that the operator told us to fetch. */
export type RemoteDocument = {
  url: string;
  /** Networks in private space that this URL may lead to, as CIDR. */
  privateNetworks: readonly string[];
  /** PEM of a private authority that vouches for the server, instead of the system's. */
  ca?: string;
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
};

export type Settings = {
  issuer: string;
  tokenEndpoint: string;
  /** The values that name us as audience of an assertion; exactly one must stand alone in `aud`. */
  assertionAudiences: readonly string[];
  skewSeconds: number;
  clients: ReadonlyMap<string, Client>;
  trustDomains: ReadonlyMap<string, TrustDomain>;
  trustedIssuers: ReadonlyMap<string, TrustedIssuer>;
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

export type Entry = { event: AuditEvent; token?: TokenRecord; guards?: readonly Guard[] };

export interface Journal {
  /**
   * Writes the event, the token's row and the spent `jti` together, durably, if every guard holds; else
   * nothing, and the guards that failed come back. Throws StoreUnavailable when the outcome is unknown.
   */
  record(entry: Entry): Promise<Result<{ eventId: string }, readonly Guard["kind"][]>>;
}

/** Failures before authentication; they are counted, not recorded one by one. */
export interface AuthFailures {
  note(source: string, endpoint: string, reason: string): void;
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

/** Public keys by the name of who vouches for them: a trust domain, or an issuer. */
export interface KeySource {
  key(name: string, header: JwsHeader): Promise<Result<Jwk, KeyFailure>>;
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
  journal: Journal;
  authFailures: AuthFailures;
  verifier: Verifier;
  signer: Signer;
  /** `jwt-svid` keys by trust domain. */
  bundles: KeySource;
  /** Keys of trusted issuers by `iss`. */
  issuers: KeySource;
};
