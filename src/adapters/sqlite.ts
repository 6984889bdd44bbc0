/**
 * The embedded store on node:sqlite: one file, one synchronous transaction for each batch, on disk before the
 * answer (AUDIT-D-1).
 */
import { chmodSync, closeSync, openSync } from "node:fs";
import type { StatementSync } from "node:sqlite";
import { DatabaseSync } from "node:sqlite";
import type { ConsentChange, Guard, SecretDigest } from "../ports.ts";
import { StoreUnavailable } from "../ports.ts";
import { STORE_TIMEOUT_MS } from "../spec/limits.ts";
import type { ClientRow, ConsentRow, EventRow, KeptDocumentRow, StoredConsentRow, TokenRow } from "./rows.ts";
import {
  fromClientRow,
  fromConsentRow,
  fromEventRow,
  fromKeptRow,
  fromStoredClientRow,
  fromStoredConsentRow,
  fromTokenRow,
  toCheckpointRow,
  toClientRow,
  toConsentRow,
  toEventRow,
  toKeptRow,
  toSecretRow,
  toTokenRow,
} from "./rows.ts";
import { auditRowsOn } from "./sqlite-audit.ts";
import type { ClientChange, GuardFailure, Head, KeyRow, Store, StoreEntry, Unmet } from "./store.ts";
import { isStorable, LogConflict, loadMigrations, pendingMigrations, spentJti, termKey } from "./store.ts";

export type SqliteOptions = {
  /** A path, or ":memory:". */
  file: string;
  timeoutMs?: number;
};

// Result codes of SQLite, without their extensions: the disk or another process is in the way.
const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const PROTOCOL = 15;
const NOT_A_DATABASE = 26;
const UNAVAILABLE = new Set([
  BUSY,
  LOCKED,
  NO_MEMORY,
  READ_ONLY,
  IO_ERROR,
  CORRUPT,
  FULL,
  CANNOT_OPEN,
  PROTOCOL,
  NOT_A_DATABASE,
]);
const PRIMARY_KEY_TAKEN = 1555;

export async function openSqlite({ file, timeoutMs = STORE_TIMEOUT_MS }: SqliteOptions): Promise<Store> {
  if (file !== ":memory:") {
    // Before SQLite makes it: its journal files take the mode of the database.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
  }
  return guarded(() => {
    const db = new DatabaseSync(file, { timeout: timeoutMs, enableForeignKeyConstraints: true });
    try {
      db.exec("pragma journal_mode = wal; pragma synchronous = full");
      migrate(db);
      return storeOn(db);
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

function migrate(db: DatabaseSync): void {
  db.exec("create table if not exists migration (number integer primary key) strict");
  transaction(db, () => {
    const row = db.prepare("select coalesce(max(number), 0) as done from migration").get();
    for (const { number, text } of pendingMigrations(loadMigrations("sqlite"), Number(row?.done))) {
      db.exec(text);
      db.prepare("insert into migration (number) values (?)").run(number);
    }
  });
}

function storeOn(db: DatabaseSync): Store {
  const statements = prepareAll(db);
  const { selectHead, selectEvents, selectLogs, selectToken, selectConsents } = statements;

  return {
    log: {
      head: async (log) => {
        const row = guarded(() => selectHead.get(log)) as Head | undefined;
        return row && { seq: row.seq, hash: row.hash };
      },
      append: async (batch) => guarded(() => transaction(db, () => appendBatch(statements, batch))),
      read: async ({ log, afterSeq = -1, limit }) =>
        guarded(() => (selectEvents.all(log, afterSeq, limit) as EventRow[]).map(fromEventRow)),
      logs: async () => guarded(() => selectLogs.all().map((row) => String(row.log))),
    },
    audit: auditRowsOn(db, (work) => guarded(() => transaction(db, work))),
    facts: {
      token: async (jti) => {
        if (!isStorable(jti)) return undefined;
        const row = guarded(() => selectToken.get({ jti })) as (TokenRow & { live: number }) | undefined;
        return row && { record: fromTokenRow(row), live: row.live === 1 };
      },
      consents: async ({ iss, sub }, actor, nowSeconds) => {
        if (![iss, sub, actor].every(isStorable)) return [];
        const rows = guarded(() => selectConsents.all(iss, sub, actor, Math.floor(nowSeconds)));
        return (rows as ConsentRow[]).map(fromConsentRow);
      },
    },
    consents: {
      find: async (id) => {
        if (!isStorable(id)) return undefined;
        const row = guarded(() => statements.selectConsent.get(id)) as StoredConsentRow | undefined;
        return row && fromStoredConsentRow(row);
      },
      list: async (origin, { afterId = "", limit = -1 } = { limit: -1 }) => {
        if (origin && !(isStorable(origin.iss) && isStorable(origin.sub))) return [];
        const rows = guarded(() =>
          origin
            ? statements.selectConsentsOf.all(origin.iss, origin.sub, afterId, limit)
            : statements.selectAllConsents.all(afterId, limit),
        );
        return (rows as StoredConsentRow[]).map(fromStoredConsentRow);
      },
    },
    clients: {
      find: async (clientId) => {
        if (!isStorable(clientId)) return undefined;
        const row = guarded(() => statements.selectClient.get(clientId)) as ClientRow | undefined;
        return row && row.disabled_at === null ? fromClientRow(row) : undefined;
      },
      list: async (clientId) => {
        if (clientId !== undefined && !isStorable(clientId)) return [];
        const { selectClient, selectAllClients } = statements;
        const rows = guarded(() =>
          clientId === undefined ? selectAllClients.all() : selectClient.all(clientId),
        );
        return (rows as ClientRow[]).map(fromStoredClientRow);
      },
    },
    keys: {
      list: async () => guarded(() => statements.selectKeys.all().map((row) => ({ ...row }) as KeyRow)),
      insertIfNone: async (row) => guarded(() => statements.insertKey.run(row).changes === 1),
    },
    kept: {
      find: async (kind, name) => {
        const row = guarded(() => statements.selectKept.get(kind, name)) as KeptDocumentRow | undefined;
        return row && fromKeptRow({ ...row });
      },
      save: async (row) => void guarded(() => statements.saveKept.run(toKeptRow(row))),
      retain: async (kind, names) =>
        void guarded(() => statements.retainKept.run(kind, JSON.stringify(names))),
    },
    close: async () => {
      if (db.isOpen) db.close();
    },
  };
}

type Statements = ReturnType<typeof prepareAll>;

const CLIENT = `
  select c.*, (
    select json_group_array(
      json_object('digest', s.digest, 'created_at', s.created_at, 'expires_at', s.expires_at)
      order by s.created_at, s.digest)
    from client_secret s where s.client_id = c.client_id
  ) as secrets
  from client c`;

function prepareAll(db: DatabaseSync) {
  return {
    selectHead: db.prepare("select seq, hash from event where log = ? order by seq desc limit 1"),
    selectEvents: db.prepare(
      `select log, seq, id, time_ms, type, body, prev, hash from event
       where log = ? and seq > ? order by seq limit ?`,
    ),
    // From name to name along the key, since there are few logs and many events.
    selectLogs: db.prepare(
      `with recursive name (log) as (
         select min(log) from event
         union all select (select min(e.log) from event e where e.log > n.log) from name n where n.log is not null
       )
       select log from name where log is not null`,
    ),
    // The token and its ancestors, each by the same measure; one without a row counts as dead.
    selectToken: db.prepare(
      `select t.*, not exists (
         select 1 from (select t.jti union all select a.value from json_each(t.ancestors) a) needed
         where not exists (select 1 from live_token l where l.jti = needed.jti)
       ) as live
       from token t where t.jti = :jti`,
    ),
    selectConsents: db.prepare(
      `select * from consent
       where origin_iss = ? and origin_sub = ? and actor = ?
         and withdrawn_at is null and (expires_at is null or expires_at > ?)
       order by id`,
    ),
    selectConsent: db.prepare("select * from consent where id = ?"),
    selectConsentsOf: db.prepare(
      "select * from consent where origin_iss = ? and origin_sub = ? and id > ? order by id limit ?",
    ),
    selectAllConsents: db.prepare("select * from consent where id > ? order by id limit ?"),
    selectKeys: db.prepare(
      `select kid, alg, purpose, state, public_jwk as "publicJwk", private_jwe as "privateJwe",
         created_at as "createdAtSeconds"
       from signing_key order by created_at, kid`,
    ),
    insertKey: db.prepare(
      `insert into signing_key (kid, alg, purpose, state, public_jwk, private_jwe, created_at)
       values (:kid, :alg, :purpose, :state, :publicJwk, :privateJwe, :createdAtSeconds) on conflict do nothing`,
    ),
    selectKept: db.prepare("select * from kept_document where kind = ? and name = ?"),
    saveKept: db.prepare(
      `insert into kept_document (kind, name, location, body, sequence, loaded_at)
       values (:kind, :name, :location, :body, :sequence, :loaded_at)
       on conflict (kind, name) do update
       set location = excluded.location, body = excluded.body, sequence = excluded.sequence,
         loaded_at = excluded.loaded_at
       where kept_document.location <> excluded.location
         or coalesce(excluded.sequence >= kept_document.sequence, true)`,
    ),
    retainKept: db.prepare(
      "delete from kept_document where kind = ? and name not in (select value from json_each(?))",
    ),
    spent: db.prepare("select 1 from spent_jti where issuer = ? and jti = ?"),
    live: db.prepare("select 1 from live_token where jti = ?"),
    current: db.prepare(
      `select 1 from consent where id = ? and version = ?
         and withdrawn_at is null and (expires_at is null or expires_at > ?)`,
    ),
    consentKnown: db.prepare("select 1 from consent where id = ?"),
    consentStands: db.prepare("select version from consent where id = ? and withdrawn_at is null"),
    insertEvent: db.prepare(
      `insert into event (log, seq, id, time_ms, type, body, prev, hash)
       values (:log, :seq, :id, :time_ms, :type, :body, :prev, :hash)`,
    ),
    insertTerm: db.prepare("insert into event_term (term, time_ms, log, seq) values (?, ?, ?, ?)"),
    insertCheckpoint: db.prepare(
      `insert into checkpoint (log, tree_size, time_ms, jws)
       values (:log, :tree_size, :time_ms, :jws) on conflict do nothing`,
    ),
    insertToken: db.prepare(
      `insert into token (jti, client_id, subject, origin_iss, origin_sub, audience, scope, chain, may_act,
         ancestors, rule_id, consent_id, issued_at, expires_at, event_id)
       values (:jti, :client_id, :subject, :origin_iss, :origin_sub, :audience, :scope, :chain, :may_act,
         :ancestors, :rule_id, :consent_id, :issued_at, :expires_at, :event_id)`,
    ),
    insertSpent: db.prepare("insert into spent_jti (issuer, jti, expires_at, event_id) values (?, ?, ?, ?)"),
    insertConsent: db.prepare(
      `insert into consent (id, version, origin_iss, origin_sub, actor, targets, scopes, expires_at)
       values (:id, :version, :origin_iss, :origin_sub, :actor, :targets, :scopes, :expires_at)`,
    ),
    replaceConsent: db.prepare(
      "update consent set version = ?, targets = ?, scopes = ?, expires_at = ? where id = ?",
    ),
    withdrawConsent: db.prepare("update consent set withdrawn_at = ?, version = version + 1 where id = ?"),
    selectClient: db.prepare(`${CLIENT} where c.client_id = ?`),
    selectAllClients: db.prepare(`${CLIENT} order by c.client_id`),
    clientKnown: db.prepare("select 1 from client where client_id = ?"),
    clientStands: db.prepare("select version from client where client_id = ? and disabled_at is null"),
    secretKnown: db.prepare("select 1 from client_secret where digest = ?"),
    insertClient: db.prepare(
      `insert into client (client_id, version, method, grant_types, workload, default_target, created_at)
       values (:client_id, 1, :method, :grant_types, :workload, :default_target, :created_at)`,
    ),
    touchClient: db.prepare("update client set version = version + 1 where client_id = ?"),
    disableClient: db.prepare("update client set disabled_at = ?, version = version + 1 where client_id = ?"),
    endSecrets: db.prepare(
      `update client_secret set expires_at = :end
       where client_id = :id and (expires_at is null or expires_at > :end)`,
    ),
    deleteSecrets: db.prepare("delete from client_secret where client_id = ? and expires_at <= ?"),
    insertSecret: db.prepare(
      `insert into client_secret (client_id, digest, created_at, expires_at)
       values (:client_id, :digest, :created_at, :expires_at)`,
    ),
  } satisfies Record<string, StatementSync>;
}

function appendBatch(statements: Statements, batch: readonly StoreEntry[]): readonly GuardFailure[] {
  const failures = batch.flatMap(({ guards = [], consent, client }, entry) => {
    const failed: Unmet[] = guards.filter((guard) => !holds(statements, guard)).map(({ kind }) => kind);
    if (consent !== undefined && !isPossible(statements, consent)) failed.push("consent_current");
    if (client !== undefined && !isPossibleFor(statements, client)) failed.push("client_current");
    return [...new Set(failed)].map((guard) => ({ entry, guard }));
  });
  // All or nothing: the chain has no room for a gap.
  if (failures.length === 0) for (const entry of batch) writeEntry(statements, entry);
  return failures;
}

function holds({ spent, live, current }: Statements, guard: Guard): boolean {
  switch (guard.kind) {
    // RFC7523-3-14: asked inside the transaction that spends it, under the one write lock of the file.
    case "jti_fresh":
      return spent.get(guard.issuer, spentJti(guard.jti)) === undefined;
    case "tokens_live":
      return guard.jtis.every((jti) => live.get(jti) !== undefined);
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

function isPossibleFor(statements: Statements, change: ClientChange): boolean {
  const { clientKnown, clientStands, secretKnown } = statements;
  if ("add" in change) {
    const { clientId, auth } = change.add;
    if (clientKnown.get(clientId) !== undefined) return false;
    return auth.secrets.every(({ digest }) => secretKnown.get(digest) === undefined);
  }
  if ("disable" in change) return clientStands.get(change.disable) !== undefined;
  if (secretKnown.get(change.secret.digest) !== undefined) return false;
  return clientStands.get(change.rotate)?.version === change.version;
}

function writeEntry(statements: Statements, entry: StoreEntry): void {
  const { event, terms = [], token, guards = [], consent, client, checkpoint } = entry;
  try {
    statements.insertEvent.run(toEventRow(event));
  } catch (error) {
    if (resultCode(error) === PRIMARY_KEY_TAKEN)
      throw new LogConflict(`${event.log} has a number ${event.seq}`);
    throw error;
  }
  for (const term of terms) statements.insertTerm.run(termKey(term), event.timeMs, event.log, event.seq);
  if (checkpoint !== undefined) statements.insertCheckpoint.run(toCheckpointRow(checkpoint));
  if (token !== undefined) statements.insertToken.run({ ...toTokenRow(token), event_id: event.id });
  for (const guard of guards) {
    if (guard.kind !== "jti_fresh") continue;
    const expiresAt = Math.ceil(guard.expiresAtSeconds);
    statements.insertSpent.run(guard.issuer, spentJti(guard.jti), expiresAt, event.id);
  }
  if (consent !== undefined) changeConsent(statements, consent);
  if (client !== undefined) changeClient(statements, client);
}

function changeConsent(statements: Statements, change: ConsentChange): void {
  if ("add" in change) {
    statements.insertConsent.run(toConsentRow(change.add));
  } else if ("replace" in change) {
    const { id, version, targets, scopes, expires_at } = toConsentRow(change.replace);
    statements.replaceConsent.run(version, targets, scopes, expires_at, id);
  } else {
    statements.withdrawConsent.run(change.atSeconds, change.withdraw);
  }
}

function changeClient(statements: Statements, change: ClientChange): void {
  const { atSeconds } = change;
  const insertSecret = (clientId: string, secret: SecretDigest): void => {
    statements.insertSecret.run({ client_id: clientId, ...toSecretRow(secret, atSeconds) });
  };
  if ("add" in change) {
    const { clientId, auth } = change.add;
    statements.insertClient.run(toClientRow(change));
    for (const secret of auth.secrets) insertSecret(clientId, secret);
  } else if ("rotate" in change) {
    statements.touchClient.run(change.rotate);
    statements.endSecrets.run({ id: change.rotate, end: change.olderEndSeconds });
    statements.deleteSecrets.run(change.rotate, atSeconds);
    insertSecret(change.rotate, change.secret);
  } else {
    statements.disableClient.run(atSeconds, change.disable);
  }
}

/** No `await` inside: nothing of ours can come between. */
function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec("begin immediate");
  try {
    const value = work();
    db.exec("commit");
    return value;
  } catch (error) {
    // SQLite itself rolls back after some faults.
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}

function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ERR_INVALID_STATE") throw new StoreUnavailable("the database is closed");
    const code = resultCode(error);
    if (code === undefined || !UNAVAILABLE.has(code & 0xff)) throw error;
    throw new StoreUnavailable(`SQLite answered ${code}`);
  }
}

function resultCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}
