/**
 * What the two stores have in common: the rows of the audit trail (AUDIT-D), of tokens, consents and keys, and
 * the promises that SQLite and PostgreSQL both keep.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Term } from "../../audit/terms.ts";
import type { AuditTrail, Consents, Facts, Registrations } from "../../ports.ts";
import type {
  CheckpointRow,
  Entry,
  InitialToken,
  RegisteredClient,
  Unmet as UnmetByFlow,
} from "../../records.ts";
import type { Client, ClientAuth, SecretDigest } from "../../settings/settings.ts";

/** The place in the chain is taken: another writer has this log, or an older write of our own landed late. */
export class LogConflict extends Error {
  override name = "LogConflict";
}

/** An event in its place; `body` is the text that was hashed. */
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

/** A client that proves itself with a secret. */
export type SecretClient = Client & { auth: Extract<ClientAuth, { secrets: unknown }> };

/**
 * Adding an id that was ever given or a secret that anyone has, rotating by another version than the current
 * one, rotating or disabling what is not there or is disabled, and rotating what registered itself are failed
 * changes: `client_current`.
 */
export type ClientChange =
  | { add: SecretClient; atSeconds: number }
  /** The older secrets end at the latest at `olderEndSeconds`; those that have ended by now are removed. */
  | { rotate: string; version: number; secret: SecretDigest; olderEndSeconds: number; atSeconds: number }
  | { disable: string; atSeconds: number };

/**
 * Adding an id or a digest that is there, and revoking what is not there or is revoked, are failed changes:
 * `initial_token_current`.
 */
export type InitialTokenChange = { add: InitialToken } | { revoke: string; atSeconds: number };

/** What an entry may change beside what the flows may ask for. */
export type Changes = {
  client?: ClientChange;
  initialToken?: InitialTokenChange;
  checkpoint?: CheckpointRow;
};

/** `terms` is what the event will be found by. */
export type StoreEntry = Omit<Entry, "event"> & { event: StoredEvent; terms?: readonly Term[] } & Changes;

/** What did not hold: a guard, or what a change needs. */
export type Unmet = UnmetByFlow | "client_current" | "initial_token_current";

export type GuardFailure = { entry: number; guard: Unmet };

export interface EventLog {
  /** The last event of a log. */
  head(log: string): Promise<Head | undefined>;
  /**
   * Writes the whole batch durably if every guard of every entry holds, else nothing, and names the guards
   * that failed. Throws LogConflict when nothing was written because a place was taken, StoreUnavailable when
   * nobody knows. Two entries of a batch must not spend the same `jti` or change the same thing. Whether an initial
   * token has ended, the time of the event says; instances that register at once may each take the last place, so
   * that there are a few clients too many.
   */
  append(batch: readonly StoreEntry[]): Promise<readonly GuardFailure[]>;
  /** Events of one log in order, after the place given or from the start. */
  read(filter: { log: string; afterSeq?: number; limit: number }): Promise<readonly StoredEvent[]>;
  /** The names of all logs in this store. */
  logs(): Promise<readonly string[]>;
}

/** The audit trail as it is kept. What is removed is removed piece by piece, by any instance, in any order. */
export interface AuditRows extends AuditTrail {
  /** The largest checkpoint of a log that is no younger than this. */
  checkpoint(log: string, atMostMs: number): Promise<CheckpointRow | undefined>;
  /** Removes the oldest events of a log below a number, at most so many; how many there were. */
  prune(log: string, belowSeq: number, limit: number): Promise<number>;
  /** Removes rows of tokens and of spent `jti` that expired before, at most so many of each; how many there were. */
  sweep(beforeSeconds: number, limit: number): Promise<number>;
}

export type KeyRow = {
  kid: string;
  alg: string;
  /** A key signs one kind of thing: a checkpoint is no token, and a grant for others is none of ours. */
  purpose: "token" | "checkpoint" | "grant";
  state: "announced" | "active" | "retired";
  publicJwk: string;
  privateJwe: string;
  createdAtSeconds: number;
};

export interface KeyRows {
  list(): Promise<readonly KeyRow[]>;
  /** False if there is one already: the `kid`, or an active key of this purpose and `alg`. */
  insertIfNone(row: KeyRow): Promise<boolean>;
}

/** A client as it is kept, without what its secrets are compared with. */
export type StoredClient = Omit<Client, "auth"> & {
  method: string;
  version: number;
  secrets: readonly { createdAtSeconds: number; expiresAtSeconds?: number }[];
  createdAtSeconds: number;
  disabledAtSeconds?: number;
};

/** `find` gives no disabled client; secrets come with their expiry, and whoever compares them looks at the clock. */
export interface ClientRows {
  /** Made by the operator, or registered if it has `metadata`; one look for whatever there is. */
  find(clientId: string): Promise<SecretClient | RegisteredClient | undefined>;
  /** All of them, disabled and removed ones too; or the one that is named. */
  list(clientId?: string): Promise<readonly StoredClient[]>;
}

export interface RegistrationRows extends Registrations {
  /** In order of their making, ended and revoked ones too. */
  initialTokens(): Promise<readonly InitialToken[]>;
  /**
   * Clients in force that never had a token and registered no later than `unusedSince`, and those whose last token
   * is no younger than `idleSince`: at most so many, those that wait longest first.
   */
  idle(since: {
    unusedSince: number;
    idleSince: number;
    limit: number;
  }): Promise<readonly { clientId: string; hadToken: boolean }[]>;
  /**
   * Removes the rows of registered clients that were removed or disabled before, and of initial tokens that expired
   * or were revoked before, at most so many of each; how many there were.
   */
  sweep(beforeSeconds: number, limit: number): Promise<number>;
}

export type KeptKind = "trust_bundle" | "issuer_keys" | "client_keys";

/** The last good copy of a document of somebody else, as it came. */
export type KeptRow = {
  kind: KeptKind;
  name: string;
  /** Whose word it is: a copy from elsewhere counts for nothing. */
  location: string;
  body: string;
  sequence?: number;
  loadedAtSeconds: number;
};

export interface KeptRows {
  find(kind: KeptKind, name: string): Promise<KeptRow | undefined>;
  /** SFD-4.2-2: one of a lower sequence does not take the place of another from the same location. */
  save(row: KeptRow): Promise<void>;
  /** Removes those of this kind that have none of these names. */
  retain(kind: KeptKind, names: readonly string[]): Promise<void>;
}

export interface Store {
  facts: Facts;
  log: EventLog;
  audit: AuditRows;
  keys: KeyRows;
  consents: Consents;
  clients: ClientRows;
  registrations: RegistrationRows;
  kept: KeptRows;
  close(): Promise<void>;
}

// --- migrations ---------------------------------------------------------------------------------------------

export type Migration = { number: number; text: string };

/** The numbered files of one store, in order. */
export function loadMigrations(store: "sqlite" | "postgres"): readonly Migration[] {
  const folder = join(import.meta.dirname, "../../../sql", store);
  const files = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  return files.sort().map((name, index) => {
    const number = Number.parseInt(name, 10);
    if (number !== index + 1) throw new Error(`sql/${store}/${name} is not number ${index + 1}`);
    return { number, text: readFileSync(join(folder, name), "utf8") };
  });
}

/** What is still to be done; a database that a newer version has changed is not ours to touch. */
export function pendingMigrations(all: readonly Migration[], done: number): readonly Migration[] {
  if (done > all.length) {
    throw new Error(
      `the database is at migration ${done}, this version knows ${all.length}: use a newer version`,
    );
  }
  return all.slice(done);
}
