/** The settings snapshot: what the configuration says, as every request sees it. */

import type { PolicySet } from "../policy/rules.ts";
import type { Stream } from "../policy/signals.ts";
import type { Worded } from "../policy/worded.ts";
import type { FetchUrl } from "../spec/rfc3986.ts";
import type { Certificate } from "../spec/rfc5280.ts";
import type { Jwk } from "../spec/rfc7517.ts";
import type { RedirectRules } from "../spec/rfc8252.ts";
import type { ExpectedSubject } from "../spec/rfc8705.ts";
import type { Bundle } from "../spec/spiffe/bundle.ts";
import type { PlatformRegistration } from "../spec/workload-grant.ts";
import type { Agents } from "./agents.ts";
import type { ClientSource, MethodWith } from "./authentication-methods.ts";
import type { SchemeColours } from "./colours.ts";
import type { DeferralRules, Dpop, General, KeySchedule, RegistrationRules } from "./sections.ts";

/** SHA-256 of a secret, base64url; several are valid at once, so that one can be replaced without an outage. */
export type SecretDigest = { digest: string; expiresAtSeconds?: number };

/** A trusted issuer that vouches for a client: its assertion must carry each of these claims (RFC7523-3-2). */
export type Voucher = { issuer: string; claims: ReadonlyMap<string, string> };

/** How a client proves itself: by the one method on record, against one credential. */
export type ClientAuth =
  | { method: MethodWith<{ credential: "secrets" }>; secrets: readonly SecretDigest[] }
  | { method: MethodWith<{ credential: "keys" }>; keys: readonly Jwk[] }
  /** Its keys are at a URL that the operator named. */
  | { method: MethodWith<{ credential: "keys" }>; jwksUri: RemoteDocument }
  /** Its keys are at a URL that the client named. */
  | { method: MethodWith<{ credential: "keys" }>; keySet: KeySetPlace }
  | { method: MethodWith<{ credential: "keys" }>; vouchers: readonly Voucher[] }
  /** A SPIFFE ID, or a prefix of SPIFFE IDs that ends in a slash and a star. */
  | { method: MethodWith<{ credential: "spiffe_id" }>; spiffeId: string }
  | {
      method: MethodWith<{ credential: "subject" }>;
      subject: ExpectedSubject;
      anchors: readonly Uint8Array[];
    }
  | { method: MethodWith<{ credential: "certificates" }>; certificates: readonly Certificate[] }
  /** The client is public: it proves nothing. */
  | { method: MethodWith<{ credential: "nothing" }> };

/** One OAuth client, from the configuration, from the store, or from a document of its own. */
export type Client = {
  clientId: string;
  source: ClientSource;
  auth: ClientAuth;
  grantTypes: readonly string[];
  /** The scopes that its registration permits; absent: it does not limit them. */
  scopes?: readonly string[];
  /** The types of `authorization_details` that it uses; absent: any (RFC9396-10-2). */
  detailTypes?: readonly string[];
  /** The class of a registered client; a rule may name it instead of the `client_id`. */
  registrationClass?: string;
  registeredAtSeconds?: number;
  /** The SPIFFE ID that this client acts as, if the operator assigned one. */
  workload?: string;
  /** Whether its own access token may be its actor token and stand for that workload. */
  actorAccessToken?: boolean;
  defaultTarget?: string;
  /** STU-D-3: its assertion names the issuer alone; absent: as for every client. */
  assertionAudience?: "issuer";
  /** What its tokens must be bound by (RFC8705-3.4-1, RFC9449-5.2-2). */
  bindsBy?: readonly ("certificate" | "dpop")[];
  /** The places where codes for the client may be sent. */
  redirectUris?: readonly string[];
  /** What it calls itself (`client_name`), by language. */
  claimedName?: Worded;
};

export type TrustDomain = {
  name: string;
  /** Which SPIFFE IDs are clients without registration: all, those under a pattern, or none. */
  admit: "all" | "none" | readonly string[];
  requireClientId: boolean;
  /** The `iss` of its JWT-SVIDs, beside the domain's own SPIFFE ID. */
  jwtIssuer?: string;
  bundle: { file: string } | RemoteDocument | SpiffeEndpoint;
};

/** A document that is fetched from a URL, and what the operator permits for that. */
export type RemoteDocument = {
  url: string;
  /** Private networks that the host may resolve to, as CIDR. */
  privateNetworks: readonly string[];
  /** PEM of a private authority for the server's certificate, in place of the system's authorities. */
  ca?: string;
};

/** A document at a URL that a client supplied: the URL is parsed once, when it is read, and never by the fetch. */
export type SuppliedDocument = RemoteDocument & { parsed: FetchUrl };

/** A client's key set, and the one algorithm of its assertions if it named one. */
export type KeySetPlace = SuppliedDocument & { algorithm?: string };

/**
 * SFD-5.2.2.2-1: a bundle endpoint that authenticates with an SVID of the trust domain whose bundle it serves; before
 * the first fetch, that SVID is verified with `bootstrap`, a bundle that the operator provides.
 */
export type SpiffeEndpoint = Pick<RemoteDocument, "url" | "privateNetworks"> & {
  endpointSpiffeId: string;
  bootstrap: Bundle;
};

/** The place of a trusted issuer's keys: a file, a fixed URL, or the URL that its metadata name (RFC8414-3.3-1). */
export type IssuerKeys =
  | { file: string }
  | (RemoteDocument & Authorized)
  | (Omit<RemoteDocument, "url"> & Authorized & { discover: string });

/** The file of a bearer token by which this server may read them. */
type Authorized = { authorization?: { file: string } };

/** How the `sub` of a foreign issuer becomes ours, so that no two issuers share a subject (RFC7519-4.1.2-v1). */
export type SubjectMapping =
  /** The `sub` stays unchanged, but is refused where another issuer's subjects are mapped to it. */
  | { kind: "keep"; reservedPrefixes: readonly string[]; reserved: ReadonlySet<string> }
  | { kind: "prefix"; prefix: string }
  | { kind: "table"; table: ReadonlyMap<string, string> };

/** The declared types under which a subject token of another issuer may come. */
export type ForeignTokenType = "jwt" | "id_token" | "access_token";

export type TrustedIssuer = {
  issuer: string;
  keys: IssuerKeys;
  audiences: readonly string[];
  acceptAs: readonly ForeignTokenType[];
  types: readonly (string | undefined)[];
  algorithms: readonly string[];
  subjects: SubjectMapping;
  /** The claim that names a subject of this issuer, in its tokens and at sign-in. */
  subjectClaim: string;
  /** The scopes of a token without `scope`; empty if it then has none. */
  scopes: readonly string[];
  /** The types of `authorization_details` that are taken from its tokens and grants. */
  details?: readonly string[];
  maxAgeSeconds?: number;
  /** If set, the issuer vouches for clients, with tokens of at most this age, which may be `reusable` until then. */
  vouches?: { maxAgeSeconds: number; reusable: boolean };
  /** Whether its software statements are accepted at registration (RFC7591-2.3-1). */
  statements?: boolean;
  /** Which kinds of its JWT authorization grants are redeemed here, and how. */
  grants?: GrantSettings;
  /** Whether its claim `mandate_job` names jobs of its own. */
  jobs?: boolean;
  /** Which of its tokens are those of workloads; a subject that matches is no user. */
  workloads: readonly PlatformRegistration[];
  /** PCL-D-7: what says which groups and other claims its users have, and how long that counts. */
  claimsFrom: readonly ("token" | "sign_in" | "userinfo")[];
  claimsMaxSeconds: number;
  /** If set, it tells of its subjects by security events. */
  signals?: SignalSource;
  /** Its subjects, by their foreign `sub`, that are refused in every role. */
  disabledSubjects: ReadonlySet<string>;
};

/** Where the events of an issuer come, and what they must have. */
export type SignalSource = {
  name: string;
  audiences: readonly string[];
  /** The digest of the Authorization header field. */
  authorization?: string;
  /** The `iss` of its events, where it writes that otherwise than in its tokens. */
  iss: string;
  /** The members of complex subjects that its metadata call critical. */
  criticalSubjectMembers: readonly string[];
  /** The claim with the e-mail address of its users, by JSON pointer; absent: none of their addresses is kept. */
  email?: string;
  /** Whether an address counts that it does not call verified. */
  unverifiedEmail: boolean;
};

/** RFC7523-5-1: what is agreed with an issuer about its grants. */
export type GrantSettings = {
  profiles: readonly ("jwt" | "id-jag")[];
  /** The scopes of a grant without `scope`; empty if it then has none. */
  scopes: readonly string[];
  /** Whether a plain grant must name the client that redeems it; an ID-JAG always must. */
  requireClientId: boolean;
};

/** How clients may register, and when registered clients that are not used are removed. */
export type RegistrationSettings = RegistrationRules & {
  /** DER of the authorities for clients of `tls_client_auth`; absent: the method cannot be registered. */
  tlsAnchors?: readonly Uint8Array[];
};

/** Which metadata documents are accepted. */
export type ClientDocumentSettings = {
  /** Absent: every origin that an outbound connection may reach. */
  origins?: ReadonlySet<string>;
  /** Whether `jwks_uri` may have another origin than the document. */
  foreignKeys: boolean;
  /** Absent: as for every client. */
  assertionAudience?: "issuer";
};

/** What the operator permits for the URLs of one origin that clients supply. */
export type Reach = Pick<RemoteDocument, "privateNetworks" | "ca">;

/** An issuer whose users manage their consents here, through these clients and with these types of token. */
export type ConsentIssuer = { clients: ReadonlySet<string>; types: readonly (string | undefined)[] };

/** How this server proves itself to a provider. */
export type ProviderAuth =
  /** The audience of assertions is the issuer, or the token endpoint as the operator pinned it. */
  | { method: "private_key_jwt"; audience: string; tokenEndpoint?: string }
  | { method: "client_secret_basic" | "client_secret_post"; secret: string };

/** An OpenID Provider at which users sign in: one of the trusted issuers, to which this server is a client. */
export type Provider = Reach & {
  name: string;
  issuer: string;
  title: Worded;
  clientId: string;
  auth: ProviderAuth;
  idTokenAlg: string;
  scopes: readonly string[];
  signInSecondsMax?: number;
  acr: readonly string[];
  /** How it is asked whether it still stands by a user. */
  recheck: "refresh" | "introspection" | "visit";
};

/** What users and clients of people find here. */
export type SignInSettings = {
  providers: ReadonlyMap<string, Provider>;
  consentSeconds: number;
  recheck: RecheckSettings;
  refresh: RefreshSettings;
};

/** When a user's provider is asked whether it still stands by them, and what follows. */
type RecheckSettings = {
  /** How old its last word is when a refresh asks it. */
  seconds: number;
  /** For how much longer that word serves while it does not answer. */
  graceSeconds: number;
  /** For how long a sign-in serves where the provider cannot be asked. */
  unaskedSeconds: number;
  /** Whether consents end when the user is gone. */
  endsConsents: boolean;
};

/** How long refresh tokens may be used, from the click of their user. */
export type RefreshSettings = {
  /** The refresh limits where the user lets the client go on without them: in all, and without use. */
  seconds: number;
  idleSeconds: number;
  /** The refresh limit anywhere else. */
  briefSeconds: number;
  /** How long after a rotation the token before it still gives the same successor. */
  retryMs: number;
};

/** The logos that this server serves, PNG files, by their paths. */
export type Logos = ReadonlyMap<string, Uint8Array>;

/** In whose name, with which logo and colours pages are shown, and in which time zone where that of the user is unknown. */
type PagesSettings = {
  operator: string;
  /** The path of the operator's own; `logos` has those of agents too. */
  logo?: string | undefined;
  logos: Logos;
  colours: SchemeColours;
  timeZone?: string | undefined;
};

export type Settings = General & {
  issuer: string;
  clients: ReadonlyMap<string, Client>;
  agents: Agents;
  /** The clients for which each issuer vouches. */
  vouchedClients: ReadonlyMap<string, readonly Client[]>;
  /** The origin of the separate listener for clients with certificates, if there is one (RFC8705-5-1). */
  mtlsOrigin?: string;
  /** Whether a listener or the proxy hands over certificates of clients; a reload does not change it. */
  takesCertificates: boolean;
  trustDomains: ReadonlyMap<string, TrustDomain>;
  trustedIssuers: ReadonlyMap<string, TrustedIssuer>;
  /** The registrations of platforms, of all trusted issuers, by name. */
  platforms: ReadonlyMap<string, PlatformRegistration>;
  consentIssuers: ReadonlyMap<string, ConsentIssuer>;
  registration: RegistrationSettings;
  /** Absent: metadata documents are off, and no URL is a `client_id`. */
  clientDocuments?: ClientDocumentSettings;
  clientOrigins: ReadonlyMap<string, Reach>;
  dpop: Dpop;
  /** The origins of web pages that may read the answers of /token, /par, /register and /revoke. */
  pageOrigins: ReadonlySet<string>;
  /** Whether browsers are told to connect only by https. */
  production: boolean;
  /** Absent: no user signs in here, and no client gets a code. */
  signIn?: SignInSettings;
  /** Present: clients may wait for their users. */
  deferral?: DeferralRules;
  /** Whether clients are told how long their refresh tokens last. */
  tellsRefreshEnds?: boolean;
  redirects: RedirectRules;
  pages: PagesSettings;
  /** When our signing keys change. */
  keys: KeySchedule;
  policy: PolicySet;
  /** The receivers of security events, by their name. */
  streams: ReadonlyMap<string, StreamSettings>;
};

/** A receiver of security events, and how they are pushed to it. */
export type StreamSettings = Stream & {
  /** The algorithm of their signatures. */
  alg: string;
  endpoint: RemoteDocument;
  /** The value of that header field, if the receiver asks for one. */
  authorization?: string;
};

/** The store is a file of SQLite, or a URL of PostgreSQL with the number of connections at most. */
export type StorePlace =
  | { sqlite: string }
  /**
   * `socketFolder` is the folder of a Unix socket, in place of the host, and `hosts` a list of servers, of which one that
   * writes is used; without `tls` nothing is encrypted.
   */
  | {
      postgres: string;
      connections?: number;
      socketFolder?: string;
      hosts?: readonly DatabaseHost[];
      tls?: DatabaseTls;
    };

export type DatabaseHost = { name: string; port: number };

export type DatabaseTls = {
  /**
   * `offered` encrypts where the server can; `verified` also verifies it by the authorities in `ca` (PEM), or by those
   * of the platform.
   */
  mode: "offered" | "required" | "verified";
  ca?: string;
};

/** A service that makes our signing keys and signs with them; `authorization` is the value of that header field. */
export type KeyServicePlace = { service: RemoteDocument; authorization?: string };

/** The second place to which checkpoints are written, so that a change of the database cannot undo them. */
export type WitnessPlace =
  | "stdout"
  | { file: string }
  /** `authorization` is the value of that header field, for a sink that authenticates its senders. */
  | { sink: RemoteDocument; authorization?: string };
