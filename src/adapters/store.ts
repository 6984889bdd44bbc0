/**
 * What the two stores have in common: the rows of the audit trail (AUDIT-D), of tokens, consents and keys, and
 * the promises that SQLite and PostgreSQL both keep.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type {
  AuditTrail,
  CheckpointRow,
  Client,
  ClientAuth,
  Clients,
  Consents,
  Entry,
  Facts,
  Guard,
  SecretDigest,
} from "../ports.ts";
import type { AuditEvent } from "../spec/audit.ts";
import type { Term } from "../spec/audit-terms.ts";
import { termsOf } from "../spec/audit-terms.ts";
import { isJsonObject, parseJson } from "../spec/json.ts";
import { CLAIMS_DEPTH_MAX } from "../spec/limits.ts";

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
 * one, and rotating or disabling what is not there or is disabled are failed changes: `client_current`.
 */
export type ClientChange =
  | { add: SecretClient; atSeconds: number }
  /** The older secrets end at the latest at `olderEndSeconds`; those that have ended by now are removed. */
  | { rotate: string; version: number; secret: SecretDigest; olderEndSeconds: number; atSeconds: number }
  | { disable: string; atSeconds: number };

/** What an entry may change beside what the flows may ask for. */
export type Changes = { client?: ClientChange; checkpoint?: CheckpointRow };

/** `terms` is what the event will be found by. */
export type StoreEntry = Omit<Entry, "event"> & { event: StoredEvent; terms?: readonly Term[] } & Changes;

/** What did not hold: a guard, or what a change needs. */
export type Unmet = Guard["kind"] | "client_current";

export type GuardFailure = { entry: number; guard: Unmet };

export interface EventLog {
  /** The last event of a log. */
  head(log: string): Promise<Head | undefined>;
  /**
   * Writes the whole batch durably if every guard of every entry holds, else nothing, and names the guards
   * that failed. Throws LogConflict when nothing was written because a place was taken, StoreUnavailable when
   * nobody knows. Two entries of a batch must not spend the same `jti` or change the same thing.
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
  /** A key signs one kind of thing: a checkpoint is no token. */
  purpose: "token" | "checkpoint";
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
  method: SecretClient["auth"]["method"];
  version: number;
  secrets: readonly { createdAtSeconds: number; expiresAtSeconds?: number }[];
  createdAtSeconds: number;
  disabledAtSeconds?: number;
};

/** `find` gives no disabled client; secrets come with their expiry, and whoever compares them looks at the clock. */
export interface ClientRows extends Clients {
  /** All of them, disabled ones too; or the one that is named. */
  list(clientId?: string): Promise<readonly StoredClient[]>;
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
  kept: KeptRows;
  close(): Promise<void>;
}

// --- what can be stored -------------------------------------------------------------------------------------

/** PostgreSQL has no U+0000 and UTF-8 no lone surrogate: nothing stored has one, so nothing is found by one. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** A text or time that one of the stores could not give back as it was is a fault of whoever let it in. */
export function assertStorable({ token, guards = [], consent, client }: Omit<StoreEntry, "event">): void {
  const texts: (string | undefined)[] = [];
  const times: (number | undefined)[] = [];
  if (token !== undefined) {
    texts.push(token.jti, token.clientId, token.subject, token.origin.iss, token.origin.sub, token.audience);
    texts.push(token.scope, token.ruleId, token.consentId, ...token.ancestors);
    times.push(token.issuedAtSeconds, token.expiresAtSeconds);
  }
  for (const guard of guards) {
    if (guard.kind === "jti_fresh") texts.push(guard.issuer);
    if (guard.kind === "tokens_live") texts.push(...guard.jtis);
    if (guard.kind === "consent_current") texts.push(guard.id);
  }
  if (consent !== undefined && !("withdraw" in consent)) {
    const { id, version, origin, actor, targets, scopes, expiresAtSeconds } =
      "add" in consent ? consent.add : consent.replace;
    texts.push(id, origin.iss, origin.sub, actor, ...targets, ...scopes);
    times.push(version, expiresAtSeconds);
  } else if (consent !== undefined) {
    texts.push(consent.withdraw);
    times.push(consent.atSeconds);
  }
  if (client !== undefined) times.push(client.atSeconds);
  if (client !== undefined && "add" in client) {
    const { clientId, auth, grantTypes, workload, defaultTarget } = client.add;
    texts.push(clientId, ...auth.secrets.map(({ digest }) => digest), ...grantTypes, workload, defaultTarget);
    times.push(...auth.secrets.map(({ expiresAtSeconds }) => expiresAtSeconds));
  } else if (client !== undefined && "rotate" in client) {
    texts.push(client.rotate, client.secret.digest);
    times.push(client.version, client.secret.expiresAtSeconds, client.olderEndSeconds);
  } else if (client !== undefined) {
    texts.push(client.disable);
  }
  if (!texts.every((text) => text === undefined || isStorable(text))) {
    throw new Error("an audit entry holds a text that cannot be stored");
  }
  if (!times.every((time) => time === undefined || Number.isSafeInteger(time))) {
    throw new Error("an audit entry holds a time that is not a whole number");
  }
}

/** RFC7523-3-14: two spellings are one only if they are equal; a key of one length, whatever the issuer wrote. */
export function spentJti(jti: string): string {
  return createHash("sha256").update(JSON.stringify(jti)).digest("base64url");
}

/** What a stored event was made findable by; a text that no journal of ours wrote had no terms. */
export function termsOfBody(body: string): readonly Term[] {
  const event = parseJson(body, CLAIMS_DEPTH_MAX);
  return event.ok && isJsonObject(event.value) ? termsOf(event.value as unknown as AuditEvent) : [];
}

/** 128 bits of a digest: an index has no room for whatever a stranger may call himself. */
export function termKey({ name, value }: Term): string {
  return createHash("sha256")
    .update(JSON.stringify([name, value]))
    .digest("base64url")
    .slice(0, 22);
}

// --- migrations ---------------------------------------------------------------------------------------------

export type Migration = { number: number; text: string };

/** The numbered files of one store, in order. */
export function loadMigrations(store: "sqlite" | "postgres"): readonly Migration[] {
  const folder = join(import.meta.dirname, "../../sql", store);
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
