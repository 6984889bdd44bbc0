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
export type JournalGuard = {
  guard?: StorePrecondition | "gap";
  list: ListName;
  why?: string;
} & (
  | { fails: string }
  /** The guard fails for a row if an ending reaches one of the keys in this column. */
  | { endedBy: string }
  /**
   * The row of this key has to be as `where` says. It is locked, so that the second of two concurrent changes sees what
   * the first changed.
   */
  | { table: string; key: string; where: string }
);

const OF_PAIR = "j.origin_iss = :origin_iss and j.origin_sub = :origin_sub and";

export const GUARDS: readonly JournalGuard[] = [
  {
    guard: "gap",
    list: "before",
    why: "The store may have gone back: a log that continues behind records that are gone has a gap.",
    fails: "(select true from event where log = :log and seq = :seq and hash = :hash) is null",
  },
  {
    list: "fresh",
    why: "RFC7523-3-14, IDC-5.5-2, RFC9449-11.1-2: what was used is not used again.",
    fails: "(select true from spent_jti where issuer = :issuer and jti = :jti)",
  },
  { list: "standing", endedBy: "keys" },
  {
    guard: "consent_current",
    list: "current",
    fails: `(select true from consent where id = :id and version = :version and withdrawn_at is null
      and (expires_at is null or expires_at > :now_seconds)) is null`,
  },
  { guard: "consent_current", list: "added", fails: "(select true from consent where id = :id)" },
  {
    guard: "consent_current",
    list: "replaced",
    table: "consent",
    key: "id",
    where: "withdrawn_at is null and version = :version - 1",
  },
  { guard: "consent_current", list: "withdrawn", table: "consent", key: "id", where: "withdrawn_at is null" },

  {
    guard: "client_current",
    list: "client",
    fails: "(select true from client where client_id = :client_id)",
  },
  {
    guard: "client_current",
    list: "secret",
    fails: "(select true from client_secret where digest = :digest)",
  },
  {
    guard: "client_current",
    list: "altered",
    table: "client",
    key: "client_id",
    where: `disabled_at is null
      and (:version is null or version = :version and source = 'operator')`,
  },
  {
    guard: "registration_current",
    list: "registered",
    fails: "(select true from client where client_id = :client_id)",
  },
  {
    guard: "registration_current",
    list: "given",
    why: "RFC7591-3.2.1-4: no two clients have the same secret.",
    fails: "(select client_id from client_secret where digest = :digest) <> :client_id",
  },
  {
    guard: "registration_current",
    list: "registration",
    table: "client",
    key: "client_id",
    where: `source = 'registration' and disabled_at is null
      and (:version is null or version = :version - 1)
      and (:unused_since is null or coalesce(last_token_at, created_at) <= :unused_since)`,
  },
  {
    guard: "registrations_below",
    list: "registered",
    fails: `:clients_max <= (select count(*) from client
        where source = 'registration' and disabled_at is null and registration_class = :registration_class)`,
  },
  {
    guard: "initial_token_usable",
    list: "spent",
    why: "RFC7591-3-3: of two registrations one has the last use.",
    table: "initial_token",
    key: "id",
    where: "revoked_at is null and expires_at > :now_seconds and uses < uses_max",
  },
  {
    guard: "initial_token_current",
    list: "initial",
    fails: "(select true from initial_token where id = :id or digest = :digest limit 1)",
  },
  {
    guard: "initial_token_current",
    list: "revoked",
    table: "initial_token",
    key: "id",
    where: "revoked_at is null",
  },

  {
    guard: "key_current",
    list: "key",
    table: "signing_key",
    key: "kid",
    where: "state = :from_state and (:was is null or private_jwe = :was)",
  },

  {
    guard: "family_current",
    list: "family_use",
    why: "REFRESH-D-4: of two refreshes the second finds another generation.",
    table: "refresh_family",
    key: "id",
    where: `generation = :current and elsewhere + :elsewhere <= 1
      and (:window_ms is null or now_ms() - rotated_ms <= :window_ms)`,
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

  {
    guard: "row_new",
    list: "short_lived",
    fails: "(select true from short_lived where kind = :kind and key = :key)",
  },
  {
    guard: "question_current",
    list: "question",
    why: "PAGE-D-23: of two decisions the second finds another version.",
    table: "pending_consent",
    key: "id",
    where: "version = :version - 1",
  },
];

/** `name` is that of its part in the statement of PostgreSQL. */
export type JournalWrite = { name: string; list: ListName; why?: string } & (Insert | Change);

/** Inserts the stored columns of the list, in this order, so that two instances cannot deadlock on the same rows. */
type Insert = {
  into: string;
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
  | { where?: string; after?: readonly string[] }
  /** Selects the rows instead; those that another transaction has locked are left out. */
  | { found: string }
);

const KEY_VALUES = {
  state: ":to_state",
  since: "coalesce(:since, t.since)",
  replace_at: "coalesce(:replace_at, t.replace_at)",
  private_jwe: "coalesce(:private_jwe, t.private_jwe)",
};

/** SQLite runs them in this order. All or none take effect, because the chain of events must not have gaps. */
export const WRITES: readonly JournalWrite[] = [
  { name: "event_out", list: "event", into: "event", order: ["seq"] },
  { name: "checkpoint_out", list: "checkpoint", into: "checkpoint", conflict: "on conflict do nothing" },
  { name: "token_out", list: "token", into: "token" },
  { name: "ending_out", list: "ending", into: "ending" },
  {
    name: "lifted_out",
    list: "lifted",
    table: "ending",
    key: ["key"],
    set: { cut_off: ":cut_off", expires_at: ":expires_at" },
    where: `t.cut_off = ${Number.MAX_SAFE_INTEGER} and t.at_ms <= :at_ms`,
  },
  { name: "spent_out", list: "fresh", into: "spent_jti", order: ["issuer", "jti"] },
  { name: "added_out", list: "added", into: "consent" },
  {
    name: "replaced_out",
    list: "replaced",
    table: "consent",
    key: ["id"],
    set: { version: ":version", targets: ":targets", scopes: ":scopes", expires_at: ":expires_at" },
  },
  {
    name: "withdrawn_out",
    list: "withdrawn",
    table: "consent",
    key: ["id"],
    set: { version: "t.version + 1", withdrawn_at: ":at_seconds" },
  },

  { name: "client_out", list: "client", into: "client" },
  {
    name: "altered_out",
    list: "altered",
    table: "client",
    key: ["client_id"],
    set: { version: "t.version + 1", disabled_at: ":disabled_at" },
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
  { name: "secret_out", list: "secret", into: "client_secret" },
  { name: "registered_out", list: "registered", into: "client" },
  {
    name: "registration_out",
    list: "registration",
    why: "RFC7592-2.2-3: an update replaces the metadata. RFC7592-5-5: a removal clears metadata and secrets.",
    table: "client",
    key: ["client_id"],
    set: {
      version: "t.version + 1",
      disabled_at: ":disabled_at",
      metadata: ":metadata",
      method: "coalesce(:method, t.method)",
      grant_types: "coalesce(:grant_types, t.grant_types)",
      ceiling: ":ceiling",
      token_generation: ":token_generation",
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
    set: { expires_at: ":expires_at" },
    where: "t.expires_at is distinct from :expires_at",
  },
  {
    name: "given_out",
    list: "given",
    into: "client_secret",
    where: "(select true from client_secret where digest = :digest) is null",
  },
  {
    name: "use_out",
    list: "spent",
    table: "initial_token",
    key: ["id"],
    set: { uses: "t.uses + 1" },
  },
  { name: "initial_out", list: "initial", into: "initial_token" },
  {
    name: "revoked_out",
    list: "revoked",
    table: "initial_token",
    key: ["id"],
    set: { revoked_at: ":revoked_at" },
  },

  { name: "key_removed", list: "key", table: "signing_key", key: ["kid"], where: ":to_state = 'removed'" },
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

  { name: "family_out", list: "family", into: "refresh_family" },
  { name: "refresh_token_out", list: "refresh_token", into: "refresh_token" },
  {
    name: "family_use_out",
    list: "family_use",
    table: "refresh_family",
    key: ["id"],
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
    name: "job_out",
    list: "job",
    into: "job",
    made: { turn: "(select coalesce(max(turn), 0) + 1 from job where actor = :actor)" },
  },
  {
    name: "issued_out",
    list: "issued",
    table: "job",
    key: ["id"],
    set: { issued: "t.issued + :count" },
  },

  {
    name: "gone_out",
    list: "gone",
    why: "By the key, under which a row is found that another instance renews at the same time; no two kinds share one.",
    table: "short_lived",
    key: ["kind", "key"],
  },
  {
    name: "dropped_out",
    list: "holder",
    why: "Without rows that another instance renews, or removes for the same reason.",
    table: "short_lived",
    key: ["kind", "key"],
    found: "kind = :kind and browser = :browser order by expires_at desc, key limit no_limit offset :kept",
  },
  { name: "short_lived_out", list: "short_lived", into: "short_lived" },
  {
    name: "recheck_out",
    list: "recheck",
    into: "recheck",
    order: ["origin_iss", "origin_sub"],
    conflict: `on conflict (origin_iss, origin_sub) do update
    set version = recheck.version + 1, provider = excluded.provider, confirmed_at = excluded.confirmed_at,
      asked_at = excluded.asked_at, sealed = excluded.sealed, expires_at = excluded.expires_at`,
  },
  {
    name: "subject_email_out",
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
    name: "question_out",
    list: "question",
    table: "pending_consent",
    key: ["id"],
    set: {
      version: ":version",
      job_id: "null",
      body: ":body",
      expires_at: ":expires_at",
      polls_recorded: ":polls_recorded",
      decided: ":decided",
    },
  },

  {
    name: "used_out",
    list: "used",
    why: "Without locked rows: the transaction that holds one records a token of the same client too, or changes it.",
    table: "client",
    key: ["client_id"],
    set: { last_token_at: ":issued_at" },
    found: `client_id = :client_id and source = 'registration'
      and (last_token_at is null or last_token_at <= :issued_at - ${LAST_TOKEN_LAG_SECONDS})`,
  },
];
