/** The settings snapshot: what the configuration says, as every request sees it. */

import type { PolicySet } from "../policy/rules.ts";
import type { FetchUrl } from "../spec/rfc3986.ts";
import type { Certificate } from "../spec/rfc5280.ts";
import type { Jwk } from "../spec/rfc7517.ts";
import type { Ceiling } from "../spec/rfc7591.ts";
import type { ExpectedSubject } from "../spec/rfc8705.ts";
import type { Bundle } from "../spec/spiffe/bundle.ts";
import type { ClientSource, MethodWith } from "./authentication-methods.ts";

/** SHA-256 of a secret, base64url; several are valid at once, so that one can be replaced without an outage. */
export type SecretDigest = { digest: string; expiresAtSeconds?: number };

/** A trusted issuer that vouches for a client: its assertion must carry each of these claims (RFC7523-3-2). */
export type Voucher = { issuer: string; claims: ReadonlyMap<string, string> };

/** How a client proves itself: one way, the registered one. */
export type ClientAuth =
  | { method: MethodWith<{ credential: "secrets" }>; secrets: readonly SecretDigest[] }
  | { method: MethodWith<{ credential: "keys" }>; keys: readonly Jwk[] }
  /** Where the operator says that its keys are. */
  | { method: MethodWith<{ credential: "keys" }>; jwksUri: RemoteDocument }
  /** Where it says itself that its keys are. */
  | { method: MethodWith<{ credential: "keys" }>; keySet: KeySetPlace }
  | { method: MethodWith<{ credential: "keys" }>; vouchers: readonly Voucher[] }
  /** A SPIFFE ID, or a prefix of SPIFFE IDs that ends in a slash and a star. */
  | { method: MethodWith<{ credential: "spiffe_id" }>; spiffeId: string }
  | {
      method: MethodWith<{ credential: "subject" }>;
      subject: ExpectedSubject;
      anchors: readonly Uint8Array[];
    }
  | { method: MethodWith<{ credential: "certificates" }>; certificates: readonly Certificate[] };

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

/** A document at a URL that a client brought, which was parsed when the client was read. */
export type BroughtDocument = RemoteDocument & { parsed: FetchUrl };

/** A key set, and the one algorithm of its owner's assertions, if it named one. */
export type KeySetPlace = BroughtDocument & { algorithm?: string };

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
  grants?: GrantSettings;
  /** `sub` values of it, as it writes them, that count no more on any path. */
  disabledSubjects: ReadonlySet<string>;
};

/** RFC7523-5-1: what is agreed with an issuer about its grants. */
export type GrantSettings = {
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

/** A file of SQLite, or a URL of PostgreSQL. */
export type StorePlace = { sqlite: string } | { postgres: string };

/** Where checkpoints go so that the database cannot take them back. */
export type WitnessPlace =
  | "stdout"
  | { file: string }
  /** `authorization` is the value of that field, for a sink that wants to know who sends. */
  | { sink: RemoteDocument; authorization?: string };
