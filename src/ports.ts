/** The interfaces between the flows and the world, the settings in force, and the one fault that has a name. */

import type { AuditEvent } from "./audit/event.ts";
import type { AuditPlace, Filter, Listing, Span } from "./audit/query.ts";
import type { Consent, Origin } from "./policy/decide.ts";
import type { PolicySet } from "./policy/rules.ts";
import type { Result } from "./result.ts";
import type { Certificate } from "./spec/rfc5280.ts";
import type { Jws, JwsHeader } from "./spec/rfc7515.ts";
import type { Jwk } from "./spec/rfc7517.ts";
import type { Ceiling } from "./spec/rfc7591.ts";
import type { JsonObject } from "./spec/rfc8259.ts";
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
  /** 256 random bits, base64url: secrets of clients (RFC6749-10.10-3). */
  secret(): string;
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
  | { method: "private_key_jwt"; jwksUri: KeySetPlace }
  | { method: "private_key_jwt"; vouchers: readonly Voucher[] }
  /** A SPIFFE ID, or a prefix of SPIFFE IDs that ends in a slash and a star. */
  | { method: "spiffe_jwt" | "spiffe_x509"; spiffeId: string }
  | { method: "tls_client_auth"; subject: ExpectedSubject; anchors: readonly Uint8Array[] }
  | { method: "self_signed_tls_client_auth"; certificates: readonly Certificate[] };

/** How a client came to be (CIMD-7.1-2): kept with it, never read from the form of its `client_id`. */
export type ClientSource = "configuration" | "operator" | "registration" | "metadata_document";

/** One OAuth client, from the configuration, from the store, or from a document of its own. */
export type Client = {
  clientId: string;
  source: ClientSource;
  auth: ClientAuth;
  grantTypes: readonly string[];
  /** What its metadata lets it ask for; absent: no side of the intersection. */
  scopes?: readonly string[];
  /** Of a registered client: what a rule may name it by, beside its `client_id`. */
  registrationClass?: string;
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

/** A key set, and the one algorithm of its owner's assertions, if he named one. */
export type KeySetPlace = RemoteDocument & { algorithm?: string };

/**
 * SFD-5.2.2.2-1: a bundle endpoint that proves itself by an SVID of the trust domain whose bundle it serves; until
 * the first one was fetched, under the authorities of a bundle that the operator has.
 */
export type SpiffeEndpoint = Pick<RemoteDocument, "url" | "privateNetworks"> & {
  endpointSpiffeId: string;
  bootstrap: Bundle;
};

/** Where the keys of a trusted issuer are: at a fixed URL, or where its metadata says (RFC8414-3.3-1). */
export type IssuerKeys = RemoteDocument | (Omit<RemoteDocument, "url"> & { discover: string });

/** How the `sub` of a foreign issuer becomes ours, so that two issuers never meet in one (RFC7519-4.1.2-v1). */
export type SubjectMapping =
  /** As it is, but never what another issuer's subjects are mapped to. */
  | { kind: "keep"; reservedPrefixes: readonly string[]; reserved: ReadonlySet<string> }
  | { kind: "prefix"; prefix: string }
  | { kind: "table"; table: ReadonlyMap<string, string> };

export type TrustedIssuer = {
  issuer: string;
  keys: IssuerKeys;
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
  /** Whether software statements of it count at registration (RFC7591-2.3-1). */
  statements?: boolean;
  /** Which kinds of JWT authorization grants of it are redeemed here, and how. */
  grants?: GrantRule;
  /** `sub` values of it, as it writes them, that count no more on any path. */
  disabledSubjects: ReadonlySet<string>;
};

/** RFC7523-5-1: what is agreed with an issuer about its grants. */
export type GrantRule = {
  profiles: readonly ("jwt" | "id-jag")[];
  /** What a grant without `scope` permits; empty: nothing. */
  scopes: readonly string[];
  /** Whether a plain grant must name the client that redeems it; an ID-JAG always must. */
  requireClientId: boolean;
};

/** Who may register without being configured, and what becomes of clients that do not come back. */
export type RegistrationSettings = {
  mode: "off" | "initial-access-token" | "open";
  /** Of clients that come without an initial access token. */
  open: Ceiling;
  /** DER of the authorities that vouch for clients of the method `tls_client_auth`; absent: it is not offered. */
  tlsAnchors?: readonly Uint8Array[];
  /** How long a client secret lasts; absent: until it is replaced. */
  secretSeconds?: number;
  /** Registered clients of one class at once, so that none can crowd out another. */
  clientsMax: number;
  /** Without any token since the registration, or since the last token: then the client is removed. */
  unusedSeconds: number;
  idleSeconds: number;
};

/** Which documents count. */
export type ClientDocumentSettings = {
  /** Absent: any origin that the guard lets us reach. */
  origins?: ReadonlySet<string>;
  /** Whether `jwks_uri` may be of another origin than the document. */
  foreignKeys: boolean;
};

/** What the operator opened for URLs of one origin that clients bring. */
export type Reach = Pick<RemoteDocument, "privateNetworks" | "ca">;

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
  registration: RegistrationSettings;
  /** Absent: a URL is nobody's `client_id`. */
  clientDocuments?: ClientDocumentSettings;
  clientOrigins: ReadonlyMap<string, Reach>;
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
export type Rates = Record<
  | "failuresBySource"
  | "failuresByClient"
  | "requestsByClient"
  /** Registrations without an initial access token. */
  | "registrationsBySource"
  /** Requests to `/register` of one client, or with one initial access token. */
  | "registrationRequestsByClient"
  /** Fetches of what clients bring the URL of, by who asked and by where they go. */
  | "fetchesBySource"
  | "fetchesByHost",
  Rate
>;

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
