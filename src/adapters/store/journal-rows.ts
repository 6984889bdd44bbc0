/**
 * What entries of the journal write, as rows: each list has the rows of one kind, with what is written and what its
 * conditions compare. journal-statements.ts says what becomes of them.
 */
import type { Origin } from "../../policy/access.ts";
import type { ConsentChange, FamilyChange, Guard, RegistrationChange } from "../../records.ts";
import type { SecretDigest } from "../../settings/settings.ts";
import {
  asEndingKeys,
  asInteger,
  asJsonText,
  asText,
  asTexts,
  type Columns,
  pick,
  type RecordOf,
  type RowValues,
  toValues,
} from "./columns.ts";
import { isFreshGuard, spentJti } from "./encoding.ts";
import { textOfRotations } from "./families.ts";
import { type ClientChange, type InitialTokenChange, NotStorable, type StoreEntry } from "./store.ts";
import {
  CHECKPOINT,
  CLIENT,
  CLIENT_SECRET,
  CONSENT,
  ENDING,
  EVENT,
  FAMILY,
  FAMILY_TOKEN,
  INITIAL_TOKEN,
  JOB,
  PENDING_CONSENT,
  RECHECK,
  SHORT_LIVED,
  SIGNING_KEY,
  SPENT_JTI,
  SUBJECT_CLAIMS,
  SUBJECT_EMAIL,
  TOKEN,
} from "./tables.ts";
import { endingsOf } from "./token-facts.ts";

/** The parts of the statement of PostgreSQL: a batch without a row in the lists of a part needs none of it. */
export type StatementPart =
  | "events"
  | "tokens"
  | "spent ids"
  | "held consents"
  | "endings"
  | "clients"
  | "keys"
  | "families"
  | "jobs"
  | "short-lived rows"
  | "questions";

/** `stored` are the columns that are inserted, `beside` those that only conditions and changes read. */
const listOf = <S extends Columns, B extends Columns>(part: StatementPart, stored: S, beside: B) => ({
  part,
  stored,
  columns: { ...stored, ...beside },
  inOrder: Object.values<Columns[string]>({ ...stored, ...beside }),
});

const NONE = {} as const;
const SECRET = { client_id: asText("clientId"), ...CLIENT_SECRET.columns };

export const LISTS = {
  /** The record before the first event of the batch, which has to be there. */
  before: listOf("events", NONE, { log: asText("log"), seq: asInteger("seq"), hash: asText("hash") }),
  event: listOf("events", EVENT.columns, NONE),
  checkpoint: listOf("endings", CHECKPOINT.columns, NONE),
  token: listOf("tokens", { ...TOKEN.columns, event_id: asText("eventId") }, NONE),
  /** When each registered client got its newest token. */
  used: listOf("tokens", NONE, {
    client_id: asText("clientId"),
    issued_at: asInteger("issuedAtSeconds"),
  }),
  fresh: listOf("spent ids", SPENT_JTI.columns, { guard: asText("kind") }),
  standing: listOf("tokens", NONE, { guard: asText("kind"), keys: asEndingKeys("keys") }),
  current: listOf("held consents", NONE, {
    id: asText("id"),
    version: asInteger("version"),
    now_seconds: asInteger("nowSeconds"),
  }),
  ending: listOf("endings", ENDING.columns, NONE),
  lifted: listOf("endings", NONE, pick(ENDING, "key", "cut_off", "at_ms", "expires_at")),
  added: listOf("endings", { ...CONSENT.columns, given_at: asInteger("givenAtSeconds") }, NONE),
  replaced: listOf("endings", pick(CONSENT, "id", "version", "targets", "scopes", "expires_at"), NONE),
  withdrawn: listOf("endings", NONE, { id: asText("withdraw"), at_seconds: asInteger("atSeconds") }),

  /** New clients, of the operator or registered, of which a class has a limited number. */
  client: listOf("clients", CLIENT.columns, { guard: asText("kind"), clients_max: asInteger("clientsMax?") }),
  /** Clients of the operator that are rotated or disabled. */
  altered: listOf("clients", NONE, {
    client_id: asText("clientId"),
    version: asInteger("version?"),
    older_end: asInteger("olderEndSeconds?"),
    at_seconds: asInteger("atSeconds?"),
    disabled_at: asInteger("disabledAtSeconds?"),
  }),
  secret: listOf("clients", SECRET, NONE),
  /** Registered clients that are updated or removed; the secrets that they have from now on. */
  registration: listOf("clients", NONE, {
    ...pick(CLIENT, "client_id", "metadata", "ceiling", "token_generation", "disabled_at"),
    version: asInteger("version?"),
    method: asText("method?"),
    grant_types: asTexts("grantTypes?"),
    unused_since: asInteger("unusedSince?"),
    digests: asJsonText("digests"),
  }),
  given: listOf("clients", SECRET, NONE),
  /** Initial access tokens: those of which a use is spent, new ones, and those that are revoked. */
  spent: listOf("clients", NONE, { id: asText("id"), now_seconds: asInteger("nowSeconds") }),
  initial: listOf("clients", INITIAL_TOKEN.columns, NONE),
  revoked: listOf("clients", NONE, { id: asText("revoke"), revoked_at: asInteger("atSeconds") }),

  key: listOf("keys", NONE, {
    ...pick(SIGNING_KEY, "kid", "since", "replace_at"),
    from_state: asText("from"),
    was: asText("was?"),
    to_state: asText("to"),
    private_jwe: asText("privateJwe?"),
  }),

  family: listOf("families", FAMILY.columns, NONE),
  refresh_token: listOf("families", FAMILY_TOKEN.columns, NONE),
  family_use: listOf("families", NONE, {
    id: asText("use"),
    /** The generation that has to be the current one for the change to be made. */
    current: asInteger("current"),
    used_at: asInteger("atSeconds"),
    idle_ends_at: asInteger("idleEndsAtSeconds?"),
    rotates: asInteger("rotates"),
    sealed: asText("sealed?"),
    /** The source of the rotation, with the generation that it replaced; then each earlier one, with its time. */
    rotated_by: asText("rotatedBy?"),
    window_ms: asInteger("windowMs?"),
    /** It is 1 for a retry from another source than that of the rotation. */
    elsewhere: asInteger("elsewhere"),
  }),

  job: listOf("jobs", JOB.columns, NONE),
  /** Each new job with how many may live. */
  job_room: listOf("jobs", NONE, {
    ...pick(JOB, "origin_iss", "origin_sub", "actor", "created_at"),
    pair_max: asInteger("ofPairMax"),
    actor_max: asInteger("ofActorMax"),
  }),
  /** Each token of a job whose number has a bound: which of those of the batch it is. */
  counted: listOf("jobs", NONE, { id: asText("id"), nth: asInteger("nth"), most: asInteger("most") }),
  /** The number of those tokens in the batch. */
  issued: listOf("jobs", NONE, { id: asText("id"), count: asInteger("count") }),

  short_lived: listOf("short-lived rows", SHORT_LIVED.columns, NONE),
  /** Holders of added rows, and how many older rows of the kind stay. */
  holder: listOf("short-lived rows", NONE, {
    kind: asText("kind"),
    browser: asText("holder"),
    kept: asInteger("kept"),
  }),
  gone: listOf("short-lived rows", NONE, { kind: asText("remove"), key: asText("key") }),
  /** What the providers of users who signed in have said of them. */
  recheck: listOf("short-lived rows", RECHECK.columns, NONE),
  /** The address that the latest token named for a user. */
  subject_email: listOf("short-lived rows", SUBJECT_EMAIL.columns, NONE),
  /** What the issuer of a user said of them last. */
  subject_claims: listOf("short-lived rows", SUBJECT_CLAIMS.columns, NONE),

  /** Questions that are decided, by their next version; such a one is none of its job any more. */
  question: listOf(
    "questions",
    NONE,
    pick(PENDING_CONSENT, "id", "version", "body", "expires_at", "polls_recorded", "decided"),
  ),
} as const;

export type ListName = keyof typeof LISTS;

/** `entry` is the place of its entry in the batch; the values are in the order of the columns of the list. */
export type JournalRow = { readonly entry: number; readonly values: RowValues };
export type JournalRows = Readonly<Record<ListName, readonly JournalRow[]>>;

type Add = <N extends ListName>(name: N, record: RecordOf<(typeof LISTS)[N]["columns"]>) => void;

/** Makes the rows of a batch; throws NotStorable for an entry that a store would not return unchanged. */
export function rowsOf(batch: readonly StoreEntry[]): JournalRows {
  const rows = {} as Record<ListName, JournalRow[]>;
  for (const name of Object.keys(LISTS) as ListName[]) rows[name] = [];
  const addFor =
    (entry: number): Add =>
    (name, record) => {
      rows[name].push({ entry, values: toValues(LISTS[name].inOrder, record) });
    };
  for (const [entry, each] of batch.entries()) {
    try {
      addEntry(addFor(entry), each, entry === 0);
    } catch (fault) {
      throw new NotStorable(entry, fault);
    }
  }
  for (const [clientId, issuedAtSeconds] of lastUses(batch)) addFor(0)("used", { clientId, issuedAtSeconds });
  const emails = latestOf(batch, ({ email }) => email && { ...email, atSeconds: email.issuedAtSeconds });
  for (const one of emails) addFor(0)("subject_email", one);
  for (const one of latestOf(batch, ({ claims }) => claims)) addFor(0)("subject_claims", one);
  addCounts(addFor, batch);
  return rows;
}

function addEntry(add: Add, entry: StoreEntry, isFirst: boolean): void {
  const {
    event,
    token,
    guards = [],
    consent,
    checkpoint,
    client,
    registration,
    initialToken,
    keys = [],
  } = entry;
  const { log, seq, prev, id: eventId } = event;
  const nowSeconds = Math.floor(event.timeMs / 1000);
  if (isFirst && seq > 0) add("before", { log, seq: seq - 1, hash: prev });
  add("event", event);
  if (checkpoint !== undefined) add("checkpoint", checkpoint);
  if (token !== undefined) add("token", { ...token, eventId });
  for (const guard of guards) addGuard(add, guard, eventId);
  for (const ending of endingsOf(entry)) {
    add("ending", {
      ...ending,
      atMs: Math.floor(ending.atMs),
      eventId,
      reason: JSON.parse(event.body).reason,
    });
  }
  if (entry.lift !== undefined) add("lifted", entry.lift);
  if (consent !== undefined) addConsent(add, consent, nowSeconds);
  if (client !== undefined) addClient(add, client);
  if (registration !== undefined) addRegistration(add, registration, nowSeconds);
  if (initialToken !== undefined) addInitialToken(add, initialToken);
  for (const key of keys) add("key", key);
  if (entry.job !== undefined) {
    add("job", entry.job.add);
    add("job_room", { ...entry.job.add, ...entry.job.most });
    for (const one of entry.job.consents) addConsent(add, { add: one }, nowSeconds);
  }
  if (entry.family !== undefined) addFamily(add, entry.family);
  for (const change of entry.rows ?? []) {
    if ("remove" in change) add("gone", change);
    else {
      const { add: row, most } = change;
      add("short_lived", row);
      if (row.holder !== undefined && most !== undefined)
        add("holder", { ...row, holder: row.holder, kept: most - 1 });
    }
  }
  if (entry.recheck !== undefined) add("recheck", entry.recheck);
  if (entry.question !== undefined) add("question", entry.question);
}

function addGuard(add: Add, guard: Guard, eventId: string): void {
  if (isFreshGuard(guard)) {
    const expiresAtSeconds = Math.ceil(guard.expiresAtSeconds);
    add("fresh", { ...guard, jti: spentJti(guard.jti), expiresAtSeconds, eventId });
  } else if (guard.kind === "consent_current") {
    add("current", { ...guard, nowSeconds: Math.floor(guard.nowSeconds) });
  } else if (guard.kind !== "job_below") add("standing", guard);
}

/** JOB-D-11: the tokens of one job in a batch are summed, because a statement changes a row only once. */
function addCounts(addFor: (entry: number) => Add, batch: readonly StoreEntry[]): void {
  const counts = new Map<string, number>();
  for (const [entry, { guards = [] }] of batch.entries()) {
    for (const guard of guards) {
      if (guard.kind !== "job_below") continue;
      const nth = (counts.get(guard.id) ?? 0) + 1;
      counts.set(guard.id, nth);
      addFor(entry)("counted", { ...guard, nth });
    }
  }
  for (const [id, count] of counts) addFor(0)("issued", { id, count });
}

function addConsent(add: Add, change: ConsentChange, givenAtSeconds: number): void {
  if ("add" in change) add("added", { ...change.add, givenAtSeconds });
  else if ("replace" in change) add("replaced", change.replace);
  else add("withdrawn", change);
}

function addClient(add: Add, change: ClientChange): void {
  const { atSeconds } = change;
  if ("disable" in change) {
    add("altered", { clientId: change.disable, disabledAtSeconds: atSeconds });
  } else if ("rotate" in change) {
    add("altered", { ...change, clientId: change.rotate });
    add("secret", { ...change.secret, clientId: change.rotate, createdAtSeconds: atSeconds });
  } else {
    const { clientId, auth } = change.add;
    const client = { ...change.add, source: "operator", version: 1, method: auth.method };
    add("client", { ...client, createdAtSeconds: atSeconds, kind: "client_current" });
    for (const secret of auth.secrets) add("secret", { ...secret, clientId, createdAtSeconds: atSeconds });
  }
}

function addRegistration(add: Add, change: RegistrationChange, nowSeconds: number): void {
  if ("remove" in change) {
    const { remove: clientId, version, atSeconds: disabledAtSeconds } = change;
    const next = version === undefined ? undefined : version + 1;
    add("registration", { ...change, clientId, version: next, disabledAtSeconds, digests: [] });
    return;
  }
  const client = "register" in change ? change.register : change.update;
  const { token_endpoint_auth_method: method, grant_types: grantTypes = [] } = client.metadata;
  const listed = { method: String(method), grantTypes: grantTypes as readonly string[] };
  const { clientId, secrets, issuedAtSeconds } = client;
  if ("register" in change) {
    const { initialTokenId: id, clientsMax } = change;
    const record = { ...client, ...listed, source: "registration", createdAtSeconds: issuedAtSeconds };
    add("client", { ...record, clientsMax, kind: "registration_current" });
    if (id !== undefined) add("spent", { id, nowSeconds });
  } else {
    add("registration", { ...client, ...listed, digests: secrets.map(({ digest }) => digest) });
  }
  const createdAtSeconds = "register" in change ? issuedAtSeconds : change.atSeconds;
  for (const secret of secrets as readonly SecretDigest[])
    add("given", { ...secret, clientId, createdAtSeconds });
}

function addInitialToken(add: Add, change: InitialTokenChange): void {
  if ("add" in change) add("initial", change.add);
  else add("revoked", change);
}

function addFamily(add: Add, change: FamilyChange): void {
  if ("start" in change) {
    const { start, digest } = change;
    add("family", start);
    add("refresh_token", { digest, familyId: start.id, generation: start.generation });
    return;
  }
  const { use: familyId, presented, next, again } = change;
  const current = again === undefined ? presented : presented + 1;
  const rotatedBy = next && textOfRotations(next);
  const elsewhere = again?.elsewhere ? 1 : 0;
  add("family_use", {
    ...change,
    ...again,
    current,
    rotates: next ? 1 : 0,
    sealed: next?.sealed,
    rotatedBy,
    elsewhere,
  });
  if (next !== undefined) add("refresh_token", { digest: next.digest, familyId, generation: current + 1 });
}

/**
 * The times of use by client. Clients whose row the batch changes otherwise are left out, because a statement can
 * change a row only once.
 */
function lastUses(batch: readonly StoreEntry[]): ReadonlyMap<string, number> {
  const uses = new Map<string, number>();
  for (const { token, isUse } of batch) {
    if (token === undefined || !isUse) continue;
    const { clientId, issuedAtSeconds } = token;
    uses.set(clientId, Math.max(issuedAtSeconds, uses.get(clientId) ?? 0));
  }
  for (const { client, registration } of batch) {
    if (client !== undefined && "disable" in client) uses.delete(client.disable);
    if (registration === undefined || "register" in registration) continue;
    uses.delete("update" in registration ? registration.update.clientId : registration.remove);
  }
  return uses;
}

/** PCL-D-12, PCL-D-8: one for each user, the latest, because a statement changes a row only once. */
function latestOf<T extends { origin: Origin; atSeconds: number; expiresAtSeconds: number }>(
  batch: readonly StoreEntry[],
  of: (entry: StoreEntry) => T | undefined,
): Iterable<T> {
  const latest = new Map<string, T>();
  for (const entry of batch) {
    const one = of(entry);
    if (one === undefined) continue;
    const name = JSON.stringify(one.origin);
    const known = latest.get(name) ?? one;
    const younger = one.atSeconds >= known.atSeconds ? one : known;
    latest.set(name, {
      ...younger,
      expiresAtSeconds: Math.max(one.expiresAtSeconds, known.expiresAtSeconds),
    });
  }
  return latest.values();
}
