/**
 * What the journal asks of the store and what it writes, said once for both databases, in the words of engine.ts. A
 * condition names the row of the list by colons (`:jti`) and is one look-up by a key; `t` is the row that is changed.
 * SQLite does each for each row in turn (sqlite/append.ts), and that of the ending keys for all rows in one statement;
 * PostgreSQL does all in one statement (postgres/record.ts).
 */
import { LAST_TOKEN_LAG_SECONDS } from "../../limits/clients.ts";
import type { ListName } from "./journal-rows.ts";
import { countOfLiving } from "./rows.ts";
import type { StorePrecondition } from "./store.ts";

/** Without `guard`, the column `guard` of the list has it; `gap` says that the record before the batch is missing. */
type GuardName = StorePrecondition | "gap";

export type JournalGuard = { guard?: GuardName; list: ListName; why?: string } & (
  | { fails: string }
  /** The guard fails for a row if an ending reaches one of the keys in this column. */
  | { endedBy: string }
  /**
   * The row of this key has to be as `where` says. It is locked, so that the second of two concurrent changes sees what
   * the first changed.
   */
  | { table: string; key: string; where: string }
);

/** `name` is that of its part in the statement of PostgreSQL, where its list has more than one. */
export type JournalWrite = { name?: string; list: ListName; why?: string } & (Insert | Change);

/** Inserts the stored columns of the list, in this order, so that two instances cannot deadlock on the same rows. */
type Insert = {
  into: string;
  /** The guard fails where the table has a row of this key: of two that add it, or spend it, one does. */
  once?: { guard?: GuardName; key: readonly string[]; why?: string };
  /** Columns beside the stored ones, with their values. */
  made?: Readonly<Record<string, string>>;
  order?: readonly string[];
  where?: string;
  conflict?: `on conflict ${string}`;
};

/**
 * Changes the rows of the table that have the key of a row of the list and fit the condition: to the values in `set`,
 * and without `set` they are removed. `after` names what has to be written before.
 */
type Change = { table: string; key: readonly string[]; set?: Readonly<Record<string, string>> } & (
  | {
      /** The guard fails unless the row of this key is as `where` says. */
      stands?: { guard: GuardName; where: string; why?: string };
      where?: string;
      after?: readonly string[];
    }
  /** Selects the rows instead; those that another transaction has locked are left out. */
  | { found: string }
);

const AT_VERSION = "version = :version - 1";
const NEXT_VERSION = { version: "t.version + 1" };

/** The columns of the list as they are. */
const own = (...names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, `:${name}`]));

const KEY_VALUES = {
  state: ":to_state",
  since: "coalesce(:since, t.since)",
  replace_at: "coalesce(:replace_at, t.replace_at)",
  private_jwe: "coalesce(:private_jwe, t.private_jwe)",
};

/** SQLite runs them in this order. All or none take effect, because the chain of events must not have gaps. */
export const WRITES: readonly JournalWrite[] = [
  { list: "event", into: "event", order: ["seq"] },
  { list: "checkpoint", into: "checkpoint", conflict: "on conflict do nothing" },
  { list: "token", into: "token" },
  { list: "ending", into: "ending" },
  {
    list: "lifted",
    table: "ending",
    key: ["key"],
    set: own("cut_off", "expires_at"),
    where: `t.cut_off = ${Number.MAX_SAFE_INTEGER} and t.at_ms <= :at_ms`,
  },
  {
    list: "fresh",
    into: "spent_jti",
    once: {
      key: ["issuer", "jti"],
      why: "RFC7523-3-14, IDC-5.5-2, RFC9449-11.1-2: what was used is not used again.",
    },
    order: ["issuer", "jti"],
  },

  { list: "added", into: "consent", once: { guard: "consent_current", key: ["id"] } },
  {
    list: "replaced",
    table: "consent",
    key: ["id"],
    stands: { guard: "consent_current", where: `withdrawn_at is null and ${AT_VERSION}` },
    set: own("version", "targets", "scopes", "expires_at"),
  },
  {
    list: "withdrawn",
    table: "consent",
    key: ["id"],
    stands: { guard: "consent_current", where: "withdrawn_at is null" },
    set: { ...NEXT_VERSION, withdrawn_at: ":at_seconds" },
  },

  { list: "client", into: "client", once: { key: ["client_id"] } },
  {
    list: "altered",
    table: "client",
    key: ["client_id"],
    stands: {
      guard: "client_current",
      where: "disabled_at is null and (:version is null or version = :version and source = 'operator')",
    },
    set: { ...NEXT_VERSION, ...own("disabled_at") },
  },
  {
    name: "expired_out",
    list: "altered",
    why: "Two disjoint sets: expired secrets are removed, and those that last longer than older_end are shortened.",
    table: "client_secret",
    key: ["client_id"],
    where: "t.expires_at <= :at_seconds or :older_end <= :at_seconds",
  },
  {
    name: "ended_out",
    list: "altered",
    table: "client_secret",
    key: ["client_id"],
    set: { expires_at: ":older_end" },
    where: ":older_end > :at_seconds and (t.expires_at is null or t.expires_at > :older_end)",
  },
  {
    list: "secret",
    into: "client_secret",
    once: { guard: "client_current", key: ["digest"] },
  },
  {
    list: "registration",
    why: "RFC7592-2.2-3: an update replaces the metadata. RFC7592-5-5: a removal clears metadata and secrets.",
    table: "client",
    key: ["client_id"],
    stands: {
      guard: "registration_current",
      where: `source = 'registration' and disabled_at is null
      and (:version is null or ${AT_VERSION})
      and (:unused_since is null or coalesce(last_token_at, created_at) <= :unused_since)`,
    },
    set: {
      ...NEXT_VERSION,
      ...own("disabled_at", "metadata", "ceiling", "token_generation"),
      method: "coalesce(:method, t.method)",
      grant_types: "coalesce(:grant_types, t.grant_types)",
    },
  },
  {
    name: "taken_out",
    list: "registration",
    why: "Secrets that are not listed again are removed; the others get the new expiry.",
    table: "client_secret",
    key: ["client_id"],
    where: "t.digest not in (texts_of(:digests))",
  },
  {
    name: "kept_out",
    list: "given",
    table: "client_secret",
    key: ["digest"],
    set: own("expires_at"),
    where: "t.expires_at is distinct from :expires_at",
  },
  {
    list: "given",
    into: "client_secret",
    where: "(select true from client_secret where digest = :digest) is null",
  },
  {
    list: "spent",
    table: "initial_token",
    key: ["id"],
    stands: {
      guard: "initial_token_usable",
      where: "revoked_at is null and expires_at > :now_seconds and uses < uses_max",
      why: "RFC7591-3-3: of two registrations one has the last use.",
    },
    set: { uses: "t.uses + 1" },
  },
  { list: "initial", into: "initial_token" },
  {
    list: "revoked",
    table: "initial_token",
    key: ["id"],
    stands: { guard: "initial_token_current", where: "revoked_at is null" },
    set: own("revoked_at"),
  },

  {
    name: "key_removed",
    list: "key",
    table: "signing_key",
    key: ["kid"],
    stands: {
      guard: "key_current",
      where: "state = :from_state and (:was is null or private_jwe = :was)",
    },
    where: ":to_state = 'removed'",
  },
  {
    name: "key_changed",
    list: "key",
    table: "signing_key",
    key: ["kid"],
    set: KEY_VALUES,
    where: ":to_state not in ('active', 'removed')",
  },
  {
    name: "key_activated",
    list: "key",
    why: "Written when the others are, because at most one key of a kind is active.",
    table: "signing_key",
    key: ["kid"],
    set: KEY_VALUES,
    where: ":to_state = 'active'",
    after: ["key_removed", "key_changed"],
  },

  { list: "family", into: "refresh_family" },
  { list: "refresh_token", into: "refresh_token" },
  {
    list: "family_use",
    table: "refresh_family",
    key: ["id"],
    stands: {
      guard: "family_current",
      where: `generation = :current and elsewhere + :elsewhere <= 1
      and (:window_ms is null or now_ms() - rotated_ms <= :window_ms)`,
      why: "REFRESH-D-4: of two refreshes the second finds another generation.",
    },
    set: {
      used_at: "case when t.used_at > :used_at then t.used_at else :used_at end",
      idle_ends_at: "case when :idle_ends_at > t.idle_ends_at then :idle_ends_at else t.idle_ends_at end",
      generation: "t.generation + :rotates",
      rotated_ms: "case when :rotates = 1 then now_ms() else t.rotated_ms end",
      elsewhere: "t.elsewhere + :elsewhere",
      sealed: "case when :rotates = 1 then :sealed else t.sealed end",
      rotated_by: "case when :rotates = 1 then :rotated_by else t.rotated_by end",
    },
  },

  {
    list: "job",
    into: "job",
    made: { turn: "(select coalesce(max(turn), 0) + 1 from job where actor = :actor)" },
  },
  { list: "issued", table: "job", key: ["id"], set: { issued: "t.issued + :count" } },

  {
    list: "gone",
    why: "By the key, under which a row is found that another instance renews at the same time; no two kinds share one.",
    table: "short_lived",
    key: ["kind", "key"],
  },
  {
    list: "holder",
    why: "Without rows that another instance renews, or removes for the same reason.",
    table: "short_lived",
    key: ["kind", "key"],
    found: "kind = :kind and browser = :browser order by expires_at desc, key limit no_limit offset :kept",
  },
  {
    list: "short_lived",
    into: "short_lived",
    once: { guard: "row_new", key: ["kind", "key"] },
  },
  {
    list: "recheck",
    into: "recheck",
    order: ["origin_iss", "origin_sub"],
    conflict: `on conflict (origin_iss, origin_sub) do update
    set version = recheck.version + 1, provider = excluded.provider, confirmed_at = excluded.confirmed_at,
      asked_at = excluded.asked_at, sealed = excluded.sealed, expires_at = excluded.expires_at`,
  },
  {
    list: "subject_email",
    why: "PCL-D-12: the address of the latest token counts, in whatever order they come; the row stays as long as either wants.",
    into: "subject_email",
    order: ["origin_iss", "origin_sub"],
    conflict: `on conflict (origin_iss, origin_sub) do update set
      email = case when excluded.issued_at < subject_email.issued_at then subject_email.email else excluded.email end,
      issued_at = case when excluded.issued_at < subject_email.issued_at then subject_email.issued_at else excluded.issued_at end,
      expires_at = case when excluded.expires_at < subject_email.expires_at then subject_email.expires_at else excluded.expires_at end`,
  },
  {
    name: "subject_claims_out",
    list: "subject_claims",
    why: "PCL-D-8: the latest word of the issuer counts, in whatever order they come.",
    into: "subject_claims",
    order: ["origin_iss", "origin_sub"],
    conflict: `on conflict (origin_iss, origin_sub) do update set
      stale = case when excluded.true_at < subject_claims.true_at then subject_claims.stale else excluded.stale end,
      said = case when excluded.true_at < subject_claims.true_at then subject_claims.said else excluded.said end,
      expires_at = case when excluded.expires_at < subject_claims.expires_at then subject_claims.expires_at else excluded.expires_at end,
      true_at = case when excluded.true_at < subject_claims.true_at then subject_claims.true_at else excluded.true_at end`,
  },

  {
    list: "question",
    table: "pending_consent",
    key: ["id"],
    stands: {
      guard: "question_current",
      where: AT_VERSION,
      why: "PAGE-D-23: of two decisions the second finds another version.",
    },
    set: { job_id: "null", ...own("version", "body", "expires_at", "polls_recorded", "decided") },
  },

  {
    list: "used",
    why: "Without locked rows: the transaction that holds one records a token of the same client too, or changes it.",
    table: "client",
    key: ["client_id"],
    set: { last_token_at: ":issued_at" },
    found: `client_id = :client_id and source = 'registration'
      and (last_token_at is null or last_token_at <= :issued_at - ${LAST_TOKEN_LAG_SECONDS})`,
  },
];

/** The guard of what is written. */
function guardOf(write: JournalWrite): readonly JournalGuard[] {
  const { list } = write;
  if ("into" in write) {
    const { into, once } = write;
    if (once === undefined) return [];
    const { key, ...guard } = once;
    const same = key.map((name) => `${name} = :${name}`).join(" and ");
    return [{ ...guard, list, fails: `(select true from ${into} where ${same})` }];
  }
  const { table, key } = write;
  if (!("stands" in write) || write.stands === undefined) return [];
  return [{ ...write.stands, list, table, key: key.join() }];
}

const OF_PAIR = "j.origin_iss = :origin_iss and j.origin_sub = :origin_sub and";

/** Those of what is written, with those for which nothing is, or more than one row counts. */
export const GUARDS: readonly JournalGuard[] = [
  {
    guard: "gap",
    list: "before",
    why: "The store may have gone back: a log that continues behind records that are gone has a gap.",
    fails: "(select true from event where log = :log and seq = :seq and hash = :hash) is null",
  },
  ...WRITES.flatMap(guardOf),
  { list: "standing", endedBy: "keys" },
  {
    guard: "consent_current",
    list: "current",
    fails: `(select true from consent where id = :id and version = :version and withdrawn_at is null
      and (expires_at is null or expires_at > :now_seconds)) is null`,
  },
  {
    guard: "registration_current",
    list: "given",
    why: "RFC7591-3.2.1-4: no two clients have the same secret.",
    fails: "(select client_id from client_secret where digest = :digest) <> :client_id",
  },
  {
    guard: "registrations_below",
    list: "client",
    fails: `:clients_max <= (select count(*) from client
        where source = 'registration' and disabled_at is null and registration_class = :registration_class)`,
  },
  {
    guard: "initial_token_current",
    list: "initial",
    fails: "(select true from initial_token where id = :id or digest = :digest limit 1)",
  },
  {
    guard: "job_below",
    list: "counted",
    why: "JOB-D-11: of two tokens that are issued at the same time the second finds the count of the first.",
    table: "job",
    key: "id",
    where: "issued + :nth <= :most",
  },
  {
    guard: "jobs_below",
    list: "job_room",
    why: "JOB-D-24: two instances that count at the same time take the same turn, which only one of them gets.",
    fails: `:pair_max <= ${countOfLiving(OF_PAIR, ":created_at", ":pair_max")}
      or :actor_max <= ${countOfLiving("", ":created_at", ":actor_max")}`,
  },
];
