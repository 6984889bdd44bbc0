/** Interfaces only: what the flows need from the outside world, and the one fault class, for a lost store. */

import type { AuditEvent } from "./audit/event.ts";
import type { Reason } from "./audit/reasons.ts";
import type { Families, Sessions } from "./ports-people.ts";
import type {
  AuditTrail,
  Consents,
  EndingReach,
  Facts,
  Jobs,
  Registrations,
  SubjectEmails,
} from "./ports-store.ts";
import type { Entry, Precondition } from "./records.ts";
import type { Awaitable, Result } from "./result.ts";
import type { Client, KeySetPlace, Settings } from "./settings/settings.ts";
import type { DocumentUrl } from "./spec/cimd.ts";
import type { Certificate } from "./spec/rfc5280.ts";
import type { Jws, JwsFailure, JwsHeader } from "./spec/rfc7515.ts";
import type { Jwk } from "./spec/rfc7517.ts";
import type { JsonObject } from "./spec/rfc8259.ts";

/**
 * The store did not answer in time, or whether it wrote is unknown: http turns it into 503, never into a token. The log
 * tells its message, which has nothing of a request.
 */
export class StoreUnavailable extends Error {
  override name = "StoreUnavailable";
  /** Of the database or the platform. */
  code?: string;
  /** No database server was met that writes, and nothing was written: the same may be done again. */
  noWriter?: true;
}

export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** Whole seconds since 1970, as in claims. */
  nowSeconds(): number;
  /** The time of a clock that nothing sets, for durations. */
  monotonicMs(): number;
}

/** Work that is due on the monotonic clock. Each call returns its cancellation; none keeps the process alive. */
export interface Timers {
  after(ms: number, work: () => void): () => void;
  every(ms: number, work: () => void): () => void;
}

export interface Random {
  /** 128 random bits or more, base64url: `jti`, event and consent ids (RFC6749-10.10-2). */
  id(): string;
  /** 256 random bits, base64url: client secrets (RFC6749-10.10-3). */
  secret(): string;
}

export interface Hash {
  /** SHA-256 of bytes, or of a text in UTF-8; base64url. */
  sha256(data: string | Uint8Array): string;
  /** The same of a name, as that of a client or a rule: unless it comes but once, its digest is kept. */
  ofName(name: string, once?: boolean): string;
  /** Compares two digests in constant time. */
  equal(a: string, b: string): boolean;
}

// --- audit trail --------------------------------------------------------------------------------------------

export interface Journal {
  /**
   * Writes the event, the token's row, the spent `jti` and the change together and durably if every guard holds. If one
   * fails, nothing is written and the failed guards are returned. Throws StoreUnavailable when it is unknown whether
   * the entry was written. If `deadline` is aborted before the entry is written, its reason is thrown, and the entry is
   * not written later. With `held`, until its deadline, an entry of which it is unknown waits until that is known.
   */
  record(
    entry: Entry,
    deadline?: AbortSignal,
    held?: boolean,
  ): Promise<Result<{ eventId: string }, readonly Precondition[]>>;
}

/** Requests that met no database server which writes. */
export interface Outage {
  /**
   * Resolves to true once the store writes again; to false at the end of the wait (`endMs`, by performance.now()), and at
   * once where there is no place for such a request.
   */
  wait(bytes: number, endMs: number, until: WaitEnd): Promise<boolean>;
}

/** Counts failures before authentication, because one record each would let unauthenticated peers fill the disk. */
export interface AuthFailures {
  /** `registrations` are those among which a platform's token does not choose. */
  note(request: NonNullable<AuditEvent["request"]>, reason: Reason, registrations?: readonly string[]): void;
}

/**
 * Counts questions about tokens by client, target and outcome, because a resource server asks for each of its requests.
 */
export interface Introspections {
  /** `target` is that of a token that we signed. */
  note(
    request: NonNullable<AuditEvent["request"]>,
    client: NonNullable<AuditEvent["client"]>,
    asked: { reason: Reason; target?: string },
  ): void;
}

export interface Throttle {
  /** Counts a request for a page or for the way to it, from this source, as `spend` does. */
  visit(source: string): number;
  /**
   * Counts a failed attempt to authenticate and returns 0, or returns the seconds that the caller is told to wait
   * because this source failed too often, as any client or as this one.
   */
  failed(source: string, clientId: string | undefined): number;
  /** Whether failures of this source are counted that its bucket has not made up for. */
  failedLately(source: string): boolean;
  /** Counts a request of an authenticated client and returns 0, or returns the seconds to wait. */
  spend(clientId: string): number;
  /** Counts a security event of an issuer, as `spend` does. */
  takeEvent(issuer: string): number;
  /** The seconds until the next one of this issuer is taken; 0 where it would be now. */
  eventWait(issuer: string): number;
  /** Counts a request to `/register` with this initial access token, or by this registered client, as `spend` does. */
  manage(id: string): number;
  /** Counts a registration without an initial access token, from this source, as `spend` does. */
  register(source: string): number;
}

/** What ends the wait of a request, for its turn to be verified or for a key. */
export type WaitEnd = { readonly deadline: AbortSignal; readonly gone?: AbortSignal | undefined };

/** `suspect` says that its source has failed lately, so that it waits for a key among others like it. */
export type KeyWait = WaitEnd & {
  readonly suspect?: boolean;
  /** MCPC-D-21: ends what one request waits for fetches at URLs of its client, all together. */
  readonly fetched?: AbortSignal;
};

/** Too many callers wait to be verified. */
export type ProofsTooMany = { reason: "proofs_too_many"; retrySeconds: number };

export interface ProofQueue {
  /**
   * Does the work that proves a caller when it is its turn, which `source` decides while CPU time is short. Paths are to
   * be verified by `paths`, whose time counts. Throws the reason of `until` where that ends the wait; nothing is done
   * then.
   */
  verify<T, E>(
    source: string,
    work: (paths: Paths) => Awaitable<Result<T, E>>,
    until?: WaitEnd,
  ): Awaitable<Result<T, E | ProofsTooMany>>;
}

export interface Clients {
  /** Clients from the configuration, from the operator and from registration; not those of metadata documents. */
  find(clientId: string): Awaitable<Client | undefined>;
}

/**
 * Why a URL supplied by a client gave no client or key. `waitSeconds` is there if the fetch budget was used up;
 * `unreachable` says that it had a good document before, which cannot be fetched now (MCPC-D-17).
 */
export type FetchRefused = {
  reason: Reason;
  waitSeconds?: number;
  unreachable?: true;
  /** Of a fetch that failed: whether the same one may succeed a moment later. */
  failed?: "now" | "always";
  /** How the refusal of a platform's token is told, which came as grant or as the subject token of an exchange. */
  as?:
    | "client_refused"
    | "grant_refused"
    | "platform_refused"
    | "workload_not_admitted"
    | "token_refused"
    | "exchange_platform_refused"
    | "exchange_not_admitted";
  /** The registrations that match the same token. */
  registrations?: readonly string[];
};

/** Clients by the URL of their metadata document. `source` is the address of the peer whose request needs it, if that pays for it. */
export interface ClientDocuments {
  find(url: DocumentUrl, source: string | undefined, until?: KeyWait): Promise<Result<Client, FetchRefused>>;
}

/** Keys at a URL supplied by a client, fetched when they are needed. */
export interface FetchedKeys {
  key(
    where: KeySetPlace,
    header: JwsHeader,
    source: string,
    until?: KeyWait,
  ): Promise<Result<Jwk, FetchRefused>>;
}

/** RFC7592-5-4: derived from the client and its generation, so that the token can be shown again and is not stored. */
export interface RegistrationTokens {
  of(clientId: string, generation: number): string;
  /** Whether it is the token of this client, made with the key-encryption key in force or the one that it replaces. */
  accepts(token: string, clientId: string, generation: number): boolean;
}

/** RFC9449-8-1: nonces that every instance makes and checks by itself, without a store. */
export interface Nonces {
  /** The newest nonce. */
  current(): string;
  /** The time until which the nonce is accepted; undefined for a text that is no nonce of ours, or no longer one. */
  endSeconds(nonce: string): number | undefined;
}

// --- keys ---------------------------------------------------------------------------------------------------

export interface Verifier {
  /** Whether this key made the signature over the received bytes, with the algorithm of the header. */
  verify(jws: Jws, key: Jwk): boolean;
  /**
   * Verifies a token that callers send again and again: a signature that was found valid is not computed again for the
   * same token and key. Whether something else makes the token invalid is never remembered. It is not used where the
   * caller must not learn by the time whether the token is one of ours or came before.
   */
  verifyRepeated(jws: Jws, key: Jwk): boolean;
  /** `parseJws`; the same frozen object again for a token that verifyRepeated found valid more than once. */
  parse(compact: string): Result<Jws, JwsFailure>;
}

export type KeyFailure =
  | "source_unknown"
  | "source_unavailable"
  | "source_silent"
  | "key_unknown"
  | "key_ambiguous";

/**
 * Public keys by the name of their owner: a trust domain, an issuer or a client. An unknown key is looked for, and the
 * request waits for that; throws the reason of `until` where that ends the wait.
 */
export interface KeySource {
  key(name: string, header: JwsHeader, until?: KeyWait): Awaitable<Result<Jwk, KeyFailure>>;
}

/**
 * The copy that is served: `fresh` from the last fetch, `last_good` from an earlier one because the last failed, or
 * `none` because there is none or it is too old.
 */
/** `keys` is how many keys and authorities the copy has; a copy with none trusts none. */
export type SourceState = { state: "fresh" | "last_good" | "none"; ageSeconds?: number; keys?: number };

export interface Bundles extends KeySource {
  /**
   * Yields the X.509 authorities (DER) of this trust domain, and of no other (SFD-4.2-4); then, for a certificate that
   * none of them signed, those after each early look at the bundle, limited in rate and shared by all requests.
   */
  anchors(trustDomain: string, until?: KeyWait): AsyncIterable<Result<readonly Uint8Array[], KeyFailure>>;
}

export interface Paths {
  /**
   * The path from the presented leaf, by way of the other certificates that were sent, to one of these anchors, with
   * every signature and every rule of RFC 5280 section 6 checked. `issuer_unknown`: no path ends at one of the anchors.
   */
  verify(
    leaf: Certificate,
    others: readonly Uint8Array[],
    anchors: readonly Uint8Array[],
    nowSeconds: number,
  ): Result<readonly Certificate[], { kind: Reason }>;
}

export type SigningKey = { kid: string; alg: string };

/** The keys of this server, for code that must not sign with them. */
export interface OwnKeys {
  /** The key that signs with this algorithm now; throws if the algorithm is not in use. */
  current(alg: string): Awaitable<SigningKey>;
  /** Our public keys, as published at `/jwks`. */
  published(): readonly JsonObject[];
  /** The public key of a `kid` of ours that still verifies. */
  own(header: JwsHeader): Jwk | undefined;
}

export interface Signer extends OwnKeys {
  /** Reads the keys again, because one may have been withdrawn. */
  renew(): Promise<void>;
  /** What is signed of these claims, which are JSON; throws for a key that does not sign. */
  input(key: SigningKey, typ: string, payload: string): string;
  /** The JWS in compact form of these claims; throws for a key that does not sign. */
  sign(key: SigningKey, typ: string, payload: string): Awaitable<string>;
  /** The signature over a text that is no JWS; throws for a key that does not sign. */
  signText(key: SigningKey, text: string): Awaitable<Uint8Array>;
}

/** RCPT-D: an event that issued a token. `pending`: no checkpoint covers it; `without`: none can be made of it. */
export type IssuedFor = {
  jti: string;
  client: string;
  audience: string;
  receipt(): Promise<Result<string, "pending" | "without">>;
};

export interface Receipts {
  find(jti: string): Promise<IssuedFor | undefined>;
  /** Each log with its name among verifiers, and its keys as they take them. */
  logs(): Promise<readonly { log: string; origin: string; keys: readonly string[] }[]>;
  /** The newest checkpoint of the log, as a signed note. */
  checkpoint(log: string): Promise<string | undefined>;
  /** The hashes (base64) that prove a log to have grown; undefined where no checkpoint covers `to` records. */
  consistency(log: string, from: number, to: number): Promise<readonly string[] | undefined>;
}

// --- all ports ----------------------------------------------------------------------------------------------

export type Ports = {
  clock: Clock;
  random: Random;
  hash: Hash;
  settings: () => Settings;
  clients: Clients;
  clientDocuments: ClientDocuments;
  registrations: Registrations;
  registrationTokens: RegistrationTokens;
  nonces: Nonces;
  facts: Facts;
  consents: Consents;
  endings: EndingReach;
  subjectEmails: SubjectEmails;
  families: Families;
  sessions: Sessions;
  jobs: Jobs;
  journal: Journal;
  outage: Outage;
  /** `keys` are the public keys that verify checkpoints. */
  audit: AuditTrail & { keys(): readonly JsonObject[] };
  receipts: Receipts;
  authFailures: AuthFailures;
  introspections: Introspections;
  throttle: Throttle;
  proofs: ProofQueue;
  verifier: Verifier;
  signer: Signer;
  /** The signer of JWT authorization grants, with keys of its own. */
  grantSigner: Signer;
  /** Signs security events. */
  signalSigner: Signer;
  paths: Paths;
  /** Trust bundles by trust domain. */
  bundles: Bundles;
  /** Keys of trusted issuers by `iss`. */
  issuers: KeySource;
  /** Keys of configured clients with a `jwks_uri`, by `client_id`. */
  clientKeys: KeySource;
  /** Keys of clients that supplied the URL themselves: by registration or metadata document. */
  fetchedKeys: FetchedKeys;
};

// --- by need ------------------------------------------------------------------------------------------------
// A signature names the members that it takes, or a group of them; start/ and the route table alone have them all.

/** The settings in force, the time, chance and digests, by which nothing outside is changed. */
export type BasePorts = Pick<Ports, "settings" | "clock" | "random" | "hash">;

/** What verifies clients: who they are, keys by which they or others vouch for them, the paths of certificates. */
export type ClientAuthPorts = BasePorts &
  Pick<Ports, "clients" | "clientDocuments" | "clientKeys" | "endings" | "fetchedKeys"> &
  Pick<Ports, "issuers" | "bundles" | "verifier">;

/** What verifies tokens of ours: their signatures, which it cannot make, and what is on record of them. */
export type OwnTokenPorts = BasePorts &
  Pick<Ports, "clients" | "facts" | "jobs" | "verifier"> & { signer: OwnKeys };

/** What verifies tokens of trusted issuers, and gives their subjects a name here. */
export type ForeignTokenPorts = BasePorts & Pick<Ports, "clients" | "endings" | "issuers" | "verifier">;

/** What verifies that a request proves a key. */
export type KeyProofPorts = BasePorts & Pick<Ports, "nonces" | "verifier">;

/** What records: events with what they change, and the number of failures of unproven callers. */
export type RecordPorts = BasePorts & Pick<Ports, "journal" | "authFailures">;

/** What limits callers, and the work for those that have proven nothing yet. */
export type LimitPorts = Pick<Ports, "throttle" | "proofs">;

/** What the trunk lends to the wing of users, which signs no token and registers no client. */
export type LentPorts = ClientAuthPorts &
  KeyProofPorts &
  RecordPorts &
  LimitPorts &
  Pick<Ports, "facts" | "endings" | "consents" | "families" | "jobs" | "audit">;
