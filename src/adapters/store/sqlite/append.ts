/** Writes the journal on node:sqlite: the guards and writes of a batch in one transaction, all or nothing. */
import type { DatabaseSync } from "node:sqlite";
import { LAST_TOKEN_LAG_SECONDS } from "../../../limits/clients.ts";
import type { ConsentChange, Guard } from "../../../records.ts";
import { isFreshGuard, spentJti } from "../encoding.ts";
import type { EventRow, TokenRow } from "../rows.ts";
import { toCheckpointRow, toConsentRow, toEventRow, toTokenRow } from "../rows.ts";
import type { GuardFailure, StoredEvent, StoreEntry, StorePrecondition } from "../store.ts";
import { LogConflict } from "../store.ts";
import { endingsOf, toEndingRow } from "../token-facts.ts";
import { clientChangesOn } from "./client-changes.ts";
import { isKeyTaken } from "./database.ts";
import { familyChangesOn } from "./families.ts";
import { keyChangesOn } from "./key-changes.ts";
import { rowChangesOn } from "./short-lived.ts";

type Append = (batch: readonly StoreEntry[]) => readonly GuardFailure[];

/** The returned function writes one batch and has to run inside a transaction. */
export function appendOn(db: DatabaseSync): Append {
  const statements = prepareAll(db);
  const changes = clientChangesOn(db);
  const keyChanges = keyChangesOn(db);
  const families = familyChangesOn(db);
  const rows = rowChangesOn(db);

  const failedBy = (entry: StoreEntry): readonly StorePrecondition[] => {
    const { guards = [], consent, keys = [] } = entry;
    const failed: StorePrecondition[] = guards
      .filter((guard) => !holds(statements, guard))
      .map(({ kind }) => kind);
    if (consent !== undefined && !isPossible(statements, consent)) failed.push("consent_current");
    if (!keyChanges.arePossible(keys)) failed.push("key_current");
    if (families.fails(entry)) failed.push("family_current");
    if (rows.fails(entry)) failed.push("row_new");
    return [...failed, ...changes.failedBy(entry)];
  };
  return (batch) => {
    // The store may have gone back: a log that continues behind records that are gone has a gap.
    const [first] = batch;
    if (first !== undefined && first.event.seq > 0) {
      const { log, seq, prev } = first.event;
      if (statements.before.get(log, seq - 1, prev) === undefined) {
        throw new LogConflict("the record before is missing");
      }
    }
    const failures = batch.flatMap((entry, index) =>
      [...new Set(failedBy(entry))].map((guard) => ({ entry: index, guard })),
    );
    if (failures.length > 0) return failures;
    // All or nothing, because the chain of events must not have gaps.
    for (const entry of batch) {
      writeEntry(statements, entry);
      changes.write(entry);
      keyChanges.write(entry.keys ?? []);
      families.write(entry);
      rows.write(entry);
    }
    return [];
  };
}

// By position, because the platform looks up each name of a parameter anew for each row.
const EVENT_COLUMNS = [
  "log",
  "seq",
  "id",
  "time_ms",
  "type",
  "body",
  "prev",
  "hash",
] as const satisfies readonly (keyof EventRow)[];
const TOKEN_COLUMNS = [
  "jti",
  "client_id",
  "workload",
  "subject",
  "origin_iss",
  "origin_sub",
  "audience",
  "scope",
  "chain",
  "may_act",
  "ancestors",
  "rule_id",
  "consent_id",
  "confirmation",
  "issued_at",
  "expires_at",
  "ending_keys",
] as const satisfies readonly (keyof TokenRow)[];

const insertInto = (table: string, columns: readonly string[]): string =>
  `insert into ${table} (${columns.join()}) values (${columns.map(() => "?").join()})`;

type Statements = ReturnType<typeof prepareAll>;

function prepareAll(db: DatabaseSync) {
  return {
    spent: db.prepare("select 1 from spent_jti where issuer = ? and jti = ?"),
    ended: db.prepare("select 1 from ending where key = ? and cut_off >= ? limit 1"),
    insertEnding: db.prepare(
      `insert into ending (key, cut_off, event_id, at_ms, expires_at, reason)
       values (:key, :cut_off, :event_id, :at_ms, :expires_at, :reason)`,
    ),
    current: db.prepare(
      `select 1 from consent where id = ? and version = ?
         and withdrawn_at is null and (expires_at is null or expires_at > ?)`,
    ),
    consentKnown: db.prepare("select 1 from consent where id = ?"),
    consentStands: db.prepare("select version from consent where id = ? and withdrawn_at is null"),
    before: db.prepare("select 1 from event where log = ? and seq = ? and hash = ?"),
    insertEvent: db.prepare(insertInto("event", EVENT_COLUMNS)),
    insertCheckpoint: db.prepare(
      `insert into checkpoint (log, tree_size, time_ms, jws)
       values (:log, :tree_size, :time_ms, :jws) on conflict do nothing`,
    ),
    insertToken: db.prepare(insertInto("token", [...TOKEN_COLUMNS, "event_id"])),
    touchRegistration: db.prepare(
      `update client set last_token_at = :at
       where client_id = :id and source = 'registration'
         and (last_token_at is null or last_token_at <= :at - ${LAST_TOKEN_LAG_SECONDS})`,
    ),
    insertSpent: db.prepare("insert into spent_jti (issuer, jti, expires_at, event_id) values (?, ?, ?, ?)"),
    insertConsent: db.prepare(
      `insert into consent (id, version, origin_iss, origin_sub, actor, targets, scopes, expires_at, given_at)
       values (:id, :version, :origin_iss, :origin_sub, :actor, :targets, :scopes, :expires_at, :given_at)`,
    ),
    replaceConsent: db.prepare(
      "update consent set version = ?, targets = ?, scopes = ?, expires_at = ? where id = ?",
    ),
    withdrawConsent: db.prepare("update consent set withdrawn_at = ?, version = version + 1 where id = ?"),
  };
}

function holds({ spent, ended, current }: Statements, guard: Guard): boolean {
  switch (guard.kind) {
    // RFC7523-3-14, IDC-5.5-2, RFC9449-11.1-2: checked in the transaction that records the use, under the write lock of the file.
    case "jti_fresh":
    case "grant_fresh":
    case "proof_fresh":
    case "code_fresh":
    case "decision_fresh":
      return spent.get(guard.issuer, spentJti(guard.jti)) === undefined;
    case "not_ended":
    case "key_stands":
      return guard.keys.every(({ key, sinceMs }) => ended.get(key, sinceMs) === undefined);
    case "consent_current":
      return current.get(guard.id, guard.version, Math.floor(guard.nowSeconds)) !== undefined;
  }
}

function isPossible({ consentKnown, consentStands }: Statements, change: ConsentChange): boolean {
  if ("add" in change) return consentKnown.get(change.add.id) === undefined;
  if ("replace" in change)
    return consentStands.get(change.replace.id)?.version === change.replace.version - 1;
  return consentStands.get(change.withdraw) !== undefined;
}

function writeEntry(statements: Statements, entry: StoreEntry): void {
  const { event, token, guards = [], consent, checkpoint } = entry;
  try {
    const row = toEventRow(event);
    statements.insertEvent.run(...EVENT_COLUMNS.map((column) => row[column]));
  } catch (error) {
    if (isKeyTaken(error)) throw new LogConflict(`the log ${event.log} already has a record ${event.seq}`);
    throw error;
  }
  if (checkpoint !== undefined) statements.insertCheckpoint.run(toCheckpointRow(checkpoint));
  if (token !== undefined) {
    const row = toTokenRow(token);
    statements.insertToken.run(...TOKEN_COLUMNS.map((column) => row[column]), event.id);
    statements.touchRegistration.run({ id: token.clientId, at: token.issuedAtSeconds });
  }
  for (const guard of guards) {
    if (!isFreshGuard(guard)) continue;
    const expiresAt = Math.ceil(guard.expiresAtSeconds);
    statements.insertSpent.run(guard.issuer, spentJti(guard.jti), expiresAt, event.id);
  }
  if (consent !== undefined) changeConsent(statements, consent, event);
  for (const ending of endingsOf(entry)) statements.insertEnding.run(toEndingRow(ending, event));
}

function changeConsent(statements: Statements, change: ConsentChange, { timeMs }: StoredEvent): void {
  if ("add" in change) {
    const given_at = Math.floor(timeMs / 1000);
    statements.insertConsent.run({ ...toConsentRow(change.add), given_at });
  } else if ("replace" in change) {
    const { id, version, targets, scopes, expires_at } = toConsentRow(change.replace);
    statements.replaceConsent.run(version, targets, scopes, expires_at, id);
  } else {
    statements.withdrawConsent.run(change.atSeconds, change.withdraw);
  }
}
