/**
 * The tables of this server in the database: made and changed by a role that may do that, and only looked at for any
 * other. They are in one schema, the first of `search_path`, whatever has the same names elsewhere.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { MIGRATION_LOCK_MS, MIGRATION_PAUSE_MS, MIGRATION_TRIES_MAX } from "../../../limits/store.ts";
import { StoreUnavailable } from "../../../ports.ts";
import {
  loadMigrations,
  type Migration,
  noteDone,
  refuseBreaking,
  refuseOlder,
  refuseUnreleased,
  selectBreaking,
  UNRELEASED,
} from "../migrations.ts";
import { NO_DATABASE, NoTables, type OpenOptions, type RoleFacts, StoreMisplaced } from "../store.ts";
import { isPostgresError, isUniqueViolation } from "./faults.ts";
import type { Call } from "./pool.ts";
import { EVERY_RIGHT, RIGHTS } from "./rights.ts";

/** An arbitrary number for the advisory lock, the same in every instance. */
const MIGRATION_LOCK = 7_220_863;
const LOCK_NOT_AVAILABLE = "55P03";
const IN_USE =
  "a migration did not get its table, which others use: end long transactions, such as a backup, and start again";

type Place = {
  /** As they are written in a statement. */
  schema: string;
  role: string;
  isSuperuser: boolean;
  mayCreate: boolean;
  isUnreleased: boolean;
  tables: readonly Table[];
};

type Where = Omit<Place, "tables"> & {
  /** Null where no schema of the path is there and may be used. */
  name: string | null;
  path: string;
  /** Another schema, in which tables of this server are. */
  elsewhere: string | null;
};

type Table = {
  name: string;
  owner: string;
  isOwned: boolean;
  hidesRows: boolean;
  missing: readonly string[];
  surplus: readonly string[];
};

/** Migrations that are still to be done, and the statements of each; nothing is changed. */
export async function scriptsToCome(call: Call): Promise<readonly string[]> {
  const place = await lookAtPlace(call);
  const pending = await pendingAt(call, place);
  return pending.map((migration, index) => {
    const begin = index === 0 ? [`set search_path to ${place.schema};`] : [];
    return [...begin, "begin;", scriptOf(migration), "commit;"].join("\n");
  });
}

/**
 * The server runs a text of several statements as one transaction. With the lock, instances that start at the same time
 * take turns; the second one violates the primary key of `migration`, and its transaction is rolled back.
 */
export async function migrate(
  call: Call,
  { mustExist, mustBeCurrent, isCopy }: Omit<OpenOptions, "timeoutMs">,
): Promise<void> {
  const place = await lookAtPlace(call);
  const pending = await pendingAt(call, place);
  const known = loadMigrations("postgres").length;
  if (pending.length > 0) refuseForeign(place, known - pending.length, known);
  if (mustExist && place.tables.length === 0) throw new NoTables(NO_DATABASE);
  if (mustBeCurrent) refuseOlder(known - pending.length, known);
  for (const migration of pending) {
    for (let tries = 1; !(await tryMigration(call, migration)); tries++) {
      if (tries === MIGRATION_TRIES_MAX) throw new StoreUnavailable(IN_USE);
      await sleep(MIGRATION_PAUSE_MS);
    }
  }
  const { tables, ...rest } = pending.length > 0 ? await lookAtPlace(call) : place;
  const needed = (right: string): boolean => !isCopy || right === "select";
  refuseMissing({
    ...rest,
    tables: tables.map((table) => ({ ...table, missing: table.missing.filter(needed) })),
  });
}

/** Does one migration, unless another instance has done it; false where others used a table for too long. */
const tryMigration = (call: Call, migration: Migration): Promise<boolean> =>
  call(async (sql) => {
    try {
      await sql.unsafe(scriptOf(migration));
      return true;
    } catch (error) {
      if (isPostgresError(error) && error.code === LOCK_NOT_AVAILABLE) return false;
      if (!isUniqueViolation(error) || error.constraint_name !== "migration_pkey") throw error;
      return true;
    }
  });

/**
 * STORE-D-6: the version before serves on meanwhile. A migration that waits for a table keeps all others waiting behind it,
 * and may be in a deadlock with one of them, for which PostgreSQL looks after a second: before that it gives up.
 */
function scriptOf(migration: Migration): string {
  const make =
    migration.number === 1
      ? "create table if not exists migration (number bigint primary key, additive boolean not null default true); "
      : "";
  const turn = `select pg_advisory_xact_lock(${MIGRATION_LOCK}); set local lock_timeout = ${MIGRATION_LOCK_MS};`;
  return `${turn} ${make}${noteDone(migration)};\n${migration.text}`;
}

async function pendingAt(call: Call, place: Place): Promise<readonly Migration[]> {
  const migrations = loadMigrations("postgres");
  if (place.tables.length === 0) return migrations;
  refuseUnreleased(place.isUnreleased);
  // A role that may not read the list of migrations is told all that it lacks.
  const list = place.tables.find(({ name }) => name === "migration");
  if (list?.missing.includes("select")) refuseMissing(place);
  const [row] = await call(
    (sql) => sql<{ done: number }[]>`select coalesce(max(number), 0) as done from migration`,
  );
  const done = row?.done ?? 0;
  if (done > migrations.length) {
    const [found] = await call((sql) => sql.unsafe(selectBreaking(migrations.length)));
    refuseBreaking(migrations.length, found?.breaking ?? null);
  }
  return migrations.slice(done);
}

async function lookAtPlace(call: Call): Promise<Place> {
  const [found] = await call(
    (sql) => sql<Where[]>`
      select current_schema() as name, quote_ident(current_schema()) as schema, quote_ident(current_user) as role,
        current_setting('search_path') as path, has_schema_privilege(current_schema(), 'create') as "mayCreate",
        (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
        exists (select from pg_class where relnamespace = to_regnamespace(quote_ident(current_schema()))
          and relname = ${UNRELEASED}) as "isUnreleased",
        (select quote_ident(n.nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where c.oid = to_regclass('migration') and n.nspname <> current_schema()
            and exists (select from pg_class o where o.relnamespace = n.oid and o.relname = 'spent_jti')) as elsewhere`,
  );
  if (found === undefined || found.name === null) {
    throw new StoreMisplaced(
      `no schema of search_path (${found?.path}) can be used: create it, or grant usage on it to ${found?.role}`,
    );
  }
  const { name, schema, role, isSuperuser, mayCreate, isUnreleased, path, elsewhere } = found;
  const rows = await call(
    (sql) => sql<
      (Omit<Table, "missing" | "surplus"> & { missing: string; surplus: string; hasNumber: boolean })[]
    >`
      select c.relname as name, quote_ident(pg_get_userbyid(c.relowner)) as owner,
        pg_has_role(c.relowner, 'usage') as "isOwned", row_security_active(c.oid) as "hidesRows",
        (select coalesce(json_agg(r), '[]') from json_array_elements_text(t.value) r
          where not has_table_privilege(c.oid, r))::text as missing,
        (select coalesce(json_agg(r), '[]') from json_array_elements_text(${JSON.stringify(EVERY_RIGHT)}::text::json) r
          where has_table_privilege(c.oid, r) and not t.value::jsonb ? r)::text as surplus,
        exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'number') as "hasNumber"
      from json_each(${JSON.stringify(RIGHTS)}::text::json) t
      join pg_class c on c.relname = t.key
      join pg_namespace n on n.oid = c.relnamespace and n.nspname = ${name}
      order by c.relname`,
  );
  const [one] = rows;
  if (one === undefined && elsewhere !== null) {
    throw new StoreMisplaced(
      `the tables of this server are in the schema ${elsewhere}, but ${schema} comes before it in search_path (${path}): set search_path to ${elsewhere} for ${role}`,
    );
  }
  if (one !== undefined && !rows.some((row) => row.name === "migration" && row.hasNumber)) {
    throw new StoreMisplaced(
      `the schema ${schema} has a table ${one.name} that is not of this server: give this server a schema of its own, by search_path of ${role}, or a database`,
    );
  }
  const tables = rows.map(({ missing, surplus, ...table }) => ({
    ...table,
    missing: JSON.parse(missing),
    surplus: JSON.parse(surplus),
  }));
  return { schema, role, isSuperuser, mayCreate, isUnreleased, tables };
}

/** Refuses to migrate for a role that does not own the tables, before anything is changed. */
function refuseForeign({ schema, role, mayCreate, tables }: Place, done: number, known: number): void {
  const foreign = tables.find(({ isOwned }) => !isOwned);
  if (mayCreate && foreign === undefined) return;
  const found =
    tables.length === 0
      ? "there are no tables of this server yet"
      : `the tables are those of an older version (${done} of ${known} migrations)`;
  const owner =
    foreign === undefined ? `a role that may create tables in ${schema}` : `the owner, ${foreign.owner}`;
  throw new StoreUnavailable(
    `${found}, and ${role} may not change the schema ${schema}: run "mandate migrate" as ${owner}`,
  );
}

function refuseMissing({ role, tables }: Place): void {
  const hidden = tables.filter(({ hidesRows }) => hidesRows).map(({ name }) => name);
  if (hidden.length > 0) {
    throw new StoreMisplaced(
      `row security hides rows of ${hidden.join(", ")} from ${role}: "alter table ${hidden[0]} disable row level security", or "alter role ${role} bypassrls"`,
    );
  }
  const grants = tables
    .filter(({ missing }) => missing.length > 0)
    .map(({ name, missing }) => `grant ${missing.join(", ")} on ${name} to ${role}`);
  if (grants.length > 0)
    throw new StoreMisplaced(`${role} lacks rights, which the owner gives: ${grants.join("; ")}`);
}

/** What the role may do beside what a server does. */
export async function factsOfRole(call: Call): Promise<RoleFacts> {
  const { role, isSuperuser, tables } = await lookAtPlace(call);
  const surplus = tables.filter((table) => table.surplus.length > 0);
  return {
    role,
    isSuperuser,
    isOwner: tables.some(({ isOwned }) => isOwned),
    revokes: surplus.map((table) => `revoke ${table.surplus.join(", ")} on ${table.name} from ${role}`),
  };
}
