/**
 * The interface of a store, which SQLite and PostgreSQL both implement: the audit trail (clauses AUDIT-D), tokens,
 * consents, clients, keys and polled documents.
 */

import type { ReachedToken, RecordedEnding } from "../../policy/signals.ts";
import { StoreUnavailable } from "../../ports.ts";
import type { Families, PendingConsents, Rechecks, Sessions, ShortLivedRows } from "../../ports-people.ts";
import type {
  Consents,
  EndingReach,
  Facts,
  Jobs,
  Registrations,
  SubjectEmails,
  TokenPlace,
} from "../../ports-store.ts";
import type {
  CheckpointRow,
  Entry,
  InitialToken,
  PendingConsent,
  Precondition,
  RegisteredClient,
  Signal,
} from "../../records.ts";
import type { Awaitable, Result } from "../../result.ts";
import type { KeyFacts, KeyState } from "../../settings/key-life.ts";
import type { Client, ClientAuth, SecretDigest } from "../../settings/settings.ts";
import type { Ceiling } from "../../spec/rfc7591.ts";
import type { AuditRows } from "./trail.ts";

/** The position in the chain is taken: another process writes this log, or an earlier write of our own arrived late. */
export class LogConflict extends Error {
  override name = "LogConflict";
}

/** The entry at this place of the batch has a text or a number that a store would not return unchanged. */
export class NotStorable extends Error {
  override name = "NotStorable";
  readonly entry: number;

  constructor(entry: number, cause: unknown) {
    super("an entry cannot be stored", { cause });
    this.entry = entry;
  }
}

/** Another process holds the database file. */
export class StoreBusy extends StoreUnavailable {}

/** An event with its position in the log; `body` is the record as one text. */
export type StoredEvent = {
  log: string;
  seq: number;
  id: string;
  timeMs: number;
  type: string;
  body: string;
  prev: string;
  hash: string;
};

export type Head = Pick<StoredEvent, "seq" | "hash">;

/** A client that authenticates with a secret. */
export type SecretClient = Client & { auth: Extract<ClientAuth, { secrets: unknown }> };

/**
 * Fails as `client_current` when an added client_id or secret was used before, when a client to be rotated or disabled
 * does not exist or is disabled, when the version is not the current one, and when a registered client is rotated.
 */
export type ClientChange =
  | { add: SecretClient; atSeconds: number }
  /** Older secrets expire at `olderEndSeconds` at the latest; expired ones are removed. */
  | { rotate: string; version: number; secret: SecretDigest; olderEndSeconds: number; atSeconds: number }
  | { disable: string; atSeconds: number };

/**
 * Fails as `initial_token_current` when an added id or digest exists, and when a token to be revoked does not exist or
 * is revoked.
 */
export type InitialTokenChange = { add: InitialToken } | { revoke: string; atSeconds: number };

/**
 * A signing key that comes into another state, is marked, or is sealed anew; `to` is its state afterwards. Fails as
 * `key_current` when the key is not in the state `from`, or when its private half is not the one in `was`.
 */
export type KeyChange = {
  kid: string;
  from: KeyState;
  to: KeyState | "removed";
  sinceSeconds?: number;
  replaceAtSeconds?: number;
  was?: string;
  privateJwe?: string;
};

/** Changes that only the operator's commands and the server itself make, not the flows. */
export type Changes = {
  /** One change of each key at most. */
  keys?: readonly KeyChange[];
  client?: ClientChange;
  initialToken?: InitialTokenChange;
  checkpoint?: CheckpointRow;
};

/** An entry whose event has its position in the log. */
export type StoreEntry = Omit<Entry, "event"> & { event: StoredEvent } & Changes;

/** The conditions of an entry, with those of changes that only the host makes. */
export type StorePrecondition = Precondition | "client_current" | "initial_token_current" | "key_current";

/** `entry` is its index in the batch. */
export type GuardFailure = { entry: number; guard: StorePrecondition };

/** The logs of events; each log is a chain with one writer. */
export interface EventLog {
  /** Finds the last event of a log. */
  head(log: string): Promise<Head | undefined>;
  /**
   * Writes the whole batch durably if every guard of every entry holds; otherwise it writes nothing and returns the
   * guards that failed. Throws LogConflict or NotStorable when nothing was written, because a position was taken or
   * because of what an entry holds, StoreUnavailable when it is unknown whether the batch was written. Two entries of a
   * batch must not use the same `jti`, change the same record, or add rows of a kind of which a holder may have a
   * limited number. The expiry of an initial access token is compared with the time of the event. Instances that
   * register clients at the same time may together exceed `clientsMax` by a few.
   */
  append(batch: readonly StoreEntry[]): Awaitable<readonly GuardFailure[]>;
  /** Reads events of one log in order, after `afterSeq` or from the start. */
  read(filter: { log: string; afterSeq?: number; limit: number }): Promise<readonly StoredEvent[]>;
  /** The names of all logs in this store. */
  logs(): Promise<readonly string[]>;
}

export type KeyRow = KeyFacts & {
  publicJwk: string;
  /** The private key, encrypted; for a key that a key service holds, its name at the service. */
  privateJwe: string;
};

/** Our signing keys, the private part encrypted. The journal changes them (`Changes`). */
export interface KeyRows {
  list(): Promise<readonly KeyRow[]>;
  /** Inserts nothing and returns false if the `kid` exists, or a key of its purpose and `alg` is in the same state. */
  insertIfNone(row: KeyRow): Promise<boolean>;
  /** Notes that an instance has these keys in use. */
  markUsed(kids: readonly string[], atSeconds: number): Promise<void>;
}

/** A stored client without the digests of its secrets, to be listed. */
export type StoredClient = Omit<Client, "auth"> & {
  method: string;
  version: number;
  secrets: readonly { createdAtSeconds: number; expiresAtSeconds?: number }[];
  createdAtSeconds: number;
  disabledAtSeconds?: number;
  /** The contacts that a registered client gave of the people who run it. */
  contacts?: readonly string[];
};

/** Stored clients. `find` returns no disabled client; the caller compares the expiry of secrets with the clock. */
export interface ClientRows {
  /** Finds a client that the operator created, or a registered one, which has `metadata`. */
  find(clientId: string): Promise<SecretClient | RegisteredClient | undefined>;
  /** Lists all clients, or the one with `clientId`; disabled and removed ones too. */
  list(clientId?: string): Promise<readonly StoredClient[]>;
}

/** Registered clients and initial access tokens, with what their removal needs. */
interface RegistrationRows extends Registrations {
  /** Lists the tokens in order of creation; expired and revoked ones too. */
  initialTokens(): Promise<readonly InitialToken[]>;
  /**
   * Finds clients that registered at `unusedSince` or earlier and never had a token, and those whose last token was
   * issued at `idleSince` or earlier; at most `limit`, the longest idle first. For a client of the class and with the
   * grant type of `open` (`isOpen`), `unusedOpenSince` counts.
   */
  idle(since: {
    unusedSince: number;
    unusedOpenSince: number;
    idleSince: number;
    open: { registrationClass: string; grantType: string };
    limit: number;
  }): Promise<readonly { clientId: string; hadToken: boolean; isOpen: boolean }[]>;
  /** Records the ceiling of a class. */
  keepCeiling(registrationClass: string, ceiling: Ceiling): Promise<void>;
  /**
   * Removes the rows of registered clients that were removed or disabled before, and of initial tokens that expired or
   * were revoked before, at most `limit` of each; returns their number.
   */
  sweep(beforeSeconds: number, limit: number): Promise<number>;
}

export type PolledKind = "trust_bundle" | "issuer_keys" | "client_keys";

/** The last good copy of a polled document, as received. */
export type PolledRow = {
  kind: PolledKind;
  name: string;
  /** Identifies the source; a copy from another source is not used. */
  location: string;
  body: string;
  sequence?: number;
  loadedAtSeconds: number;
};

/** The last good copies of polled documents. */
export interface PolledRows {
  find(kind: PolledKind, name: string): Promise<PolledRow | undefined>;
  /** SFD-4.2-2: a copy does not replace one with a higher sequence number from the same location. */
  save(row: PolledRow): Promise<void>;
  /** Gives the copy another time of loading if it still has the time `fromSeconds`. */
  redate(kind: PolledKind, name: string, fromSeconds: number, toSeconds: number): Promise<void>;
  /** Removes the copies of this kind whose name is not listed. */
  retain(kind: PolledKind, names: readonly string[]): Promise<void>;
}

/** The text of a policy set that decided or may decide, by its digest. */
export type ArchivedPolicy = { digest: string; body: string; usedAtSeconds: number };

/** REPL-D-2: a set is kept for as long as an event may name it. */
export interface PolicyRows extends Expiring {
  /** Notes that the set is in force; false where it is not there. */
  use(digest: string, atSeconds: number): Promise<boolean>;
  /** Adds nothing where it is there. */
  add(policy: ArchivedPolicy): Promise<void>;
  find(digest: string): Promise<ArchivedPolicy | undefined>;
  /** The digests of all, in their order. */
  digests(): Promise<readonly string[]>;
}

/** A process of this server, which took a name at `sinceMs`. */
export type Holder = { host: string; pid: number; sinceMs: number };

/** A name that this process holds. */
export type Held = {
  /** Renews a hold that lapses, also after it has lapsed; returns false if another process has taken the name. */
  renew?(): Promise<boolean>;
  /** Notes by how much the clock of this process is ahead of that of the store. */
  noteClock?(aheadMs: number): Promise<void>;
  /** Gives the name up; it is called once. */
  release(): Promise<void>;
};

/**
 * The process that keeps a name from being taken, as far as it is known. `lapsesAtMs` is when its hold lapses unless it
 * is renewed, by the clock of the store; without it the hold lasts for as long as that process lives.
 */
export type NameTaken = Partial<Holder> & { lapsesAtMs?: number };

/** By how much the clock of a running instance was ahead of that of the store when it last noted it. */
export type InstanceClock = { name: string; host: string; aheadMs: number };

/** The names of running instances: one process at a time has a name, and with it writes the log of this name. */
export interface InstanceNames {
  /**
   * Takes a name. `leaseMs` is how long the hold lasts without being renewed, where it does not end with its process.
   * `dead` is the `lapsesAtMs` of a hold that is taken although it has not lapsed.
   */
  take(
    name: string,
    self: Pick<Holder, "host" | "pid">,
    leaseMs: number,
    dead?: number,
  ): Promise<Result<Held, NameTaken>>;
  /** Finds the process that took the name last and has not given it up, as far as the rows of the store tell. */
  holder(name: string): Promise<Holder | undefined>;
  /** The clocks of the instances that run, of those that have noted theirs; absent where the store has no clock. */
  clocks?(): Promise<readonly InstanceClock[]>;
}

/** Rows that end. */
interface Expiring {
  /** Removes at most `limit` rows, with what belongs to them, whose end was before; returns their number. */
  sweep(beforeSeconds: number, limit: number): Promise<number>;
}

export interface ShortLivedStore extends ShortLivedRows, Sessions, Expiring {}

export interface FamilyRows extends Families, Expiring {
  /**
   * REFRESH-D-6: removes the kept successors of rotations that are longer ago than the window; returns their number.
   */
  forgetSuccessors(windowMs: number, limit: number): Promise<number>;
}

export interface JobRows extends Jobs, Expiring {}

export interface RecheckRows extends Rechecks, Expiring {}

export interface SubjectEmailRows extends SubjectEmails, Expiring {}

export interface SubjectClaimsRows extends Expiring {
  find: Facts["claims"];
}

export interface PendingConsentStore extends PendingConsents {
  /** At most `limit` of those whose end was before. */
  over(beforeSeconds: number, limit: number): Promise<readonly PendingConsent[]>;
  /** Removes one whose end was before; returns the number of rows. */
  remove(pending: PendingConsent, beforeSeconds: number): Promise<number>;
}

/** Security events that wait for their receivers, and those that were delivered, until they expire. */
export interface SignalRows {
  /** Endings that were recorded since then, the oldest first. */
  endings(sinceMs: number, limit: number): Promise<readonly RecordedEnding[]>;
  /** Of the tokens that expire later the next ones for these audiences that carry one of the keys, and maybe others; `place` as of an ending. */
  tokens(filter: {
    keys: readonly string[];
    audiences: readonly string[];
    expireAfterSeconds: number;
    place?: TokenPlace;
  }): Promise<{ tokens: readonly ReachedToken[]; place?: TokenPlace }>;
  /** Those of the ids under which the stream has an event. */
  known(stream: string, jtis: readonly string[]): Promise<ReadonlySet<string>>;
  /** Adds the events, except where their stream has one with this id; returns their number. */
  add(signals: readonly Signal[]): Promise<number>;
  /** Takes events of the stream that are due up to `nowMs`; they are due again at `againMs`, unless they are settled. */
  take(stream: string, nowMs: number, againMs: number, limit: number): Promise<readonly Signal[]>;
  /** The event is due again at this time. */
  postpone(signal: Pick<Signal, "stream" | "jti">, atMs: number): Promise<void>;
  /** The event was delivered then, or refused for good, for which the time is zero. */
  settle(signal: Pick<Signal, "stream" | "jti">, atMs: number): Promise<void>;
  /** How many wait for the stream, counted up to `limit`, and since when the oldest of these does. */
  waiting(stream: string, limit: number): Promise<{ count: number; oldestMs?: number }>;
  /** Removes what expired before, at most `limit`; returns the number of each stream that had not been delivered. */
  sweep(beforeSeconds: number, limit: number): Promise<{ rows: number; lost: ReadonlyMap<string, number> }>;
}

/** Tells a copy of a store from the original: a copy lacks what was recorded after it was made. */
export interface RestoredMark {
  /** When the copy was made or the store was marked; undefined for an original. */
  find(): Promise<number | undefined>;
  set(atMs: number): Promise<void>;
  clear(): Promise<void>;
}

/** One database with everything that this server stores; every call throws StoreUnavailable if it does not answer. */
export interface Store {
  facts: Facts;
  log: EventLog;
  audit: AuditRows;
  keys: KeyRows;
  consents: Consents;
  endings: EndingReach;
  clients: ClientRows;
  registrations: RegistrationRows;
  polled: PolledRows;
  policies: PolicyRows;
  names: InstanceNames;
  shortLived: ShortLivedStore;
  families: FamilyRows;
  jobs: JobRows;
  pendingConsents: PendingConsentStore;
  rechecks: RecheckRows;
  subjectEmails: SubjectEmailRows;
  subjectClaims: SubjectClaimsRows;
  signals: SignalRows;
  restored: RestoredMark;
  /** The time that one removal of rows should take. */
  sliceMs: number;
  /** The time of the database's own clock; absent where it uses that of this machine. */
  nowMs?(): Promise<number>;
  /**
   * Writes a copy of this moment into a new file, which carries the mark, while others write on. Absent where the
   * database has tools of its own for that.
   */
  copyTo?(file: string, atMs: number): Promise<void>;
  /** Connections in use and idle, and calls that wait for one; absent where there are none. */
  connections?(): Readonly<Record<"in_use" | "idle" | "waiting", number>>;
  /** The role of this store at its database; absent where there are none. */
  role?(): Promise<RoleFacts>;
  /** Absent where there is none. */
  replication?(): Promise<Replication | undefined>;
  close(): Promise<void>;
}

/** The standbys that a commit waits for (`synchronous_standby_names`), and how many follow now. */
export type Replication = { waitsFor: string; standbys: number };

/** `revokes`: the statements that take away what no server needs. */
export type RoleFacts = { role: string; isSuperuser: boolean; isOwner: boolean; revokes: readonly string[] };

export type OpenOptions = {
  /** How long a call may take before it throws StoreUnavailable. */
  timeoutMs: number;
  /** Refuses a place where no server has made its tables. */
  mustExist: boolean;
  /** Refuses a place whose tables are those of an older version, instead of bringing them up to this one. */
  mustBeCurrent: boolean;
  /** Only read, and needs no server that writes. */
  isCopy?: boolean;
};

/** Why a place without our tables is refused. */
export const NO_DATABASE =
  "there is no database of this server: check `store` in the configuration, or start the server once";

/** A database that cannot be used as it is reached: waiting does not help. */
export class StoreMisplaced extends StoreUnavailable {}

/** A database that answers, and has no tables of this server. */
export class NoTables extends StoreUnavailable {}
