/** Converts records to rows and back, as in both stores: rows have the names of columns, records our own. */
import { LOG_END } from "../../audit/event.ts";
import type { Consent } from "../../policy/ask.ts";
import type { EndingKey } from "../../policy/endings.ts";
import type {
  AuditQuery,
  AuditRecord,
  CheckpointRow,
  StandingConsent,
  StoredConsent,
  TokenRecord,
} from "../../records.ts";
import { defined } from "../../result.ts";
import type {
  KeyRow,
  PolledKind,
  PolledRow,
  Segment,
  StoredEvent,
  StoredList,
  StoredSegment,
  TermList,
} from "./store.ts";

export type EventRow = Omit<StoredEvent, "timeMs"> & { time_ms: number };

export function fromEventRow({ time_ms, ...event }: EventRow): StoredEvent {
  return { ...event, timeMs: time_ms };
}

export type HeadRow = Pick<EventRow, "log" | "seq" | "hash" | "type">;

export const fromHeadRow = ({ log, seq, hash, type }: HeadRow) => ({
  log,
  seq,
  hash,
  ended: type === LOG_END,
});

export type AuditRow = Pick<EventRow, "log" | "seq" | "time_ms" | "body">;

export function fromAuditRow({ time_ms, log, seq, body }: AuditRow): AuditRecord {
  return { timeMs: time_ms, log, seq, body };
}

/** The times between which a query of the trail looks, and the position that it follows: without one, all do. */
export function boundsOf({
  fromMs = 0,
  toMs = Number.MAX_SAFE_INTEGER,
  after,
  newestFirst,
}: Pick<AuditQuery, "fromMs" | "toMs" | "after" | "newestFirst">) {
  // The times of the position as well, because the index is searched by them.
  if (newestFirst) {
    const start = after ?? { timeMs: Number.MAX_SAFE_INTEGER, log: "", seq: -1 };
    return { fromMs, toMs: Math.min(toMs, start.timeMs + 1), after: start };
  }
  const start = after ?? { timeMs: -1, log: "", seq: -1 };
  return { fromMs: Math.max(fromMs, start.timeMs), toMs, after: start };
}

export type SegmentRow = {
  id: number;
  log: string;
  from_seq: number;
  to_seq: number;
  from_ms: number;
  to_ms: number;
};

export function toSegmentRow({ log, fromSeq, toSeq, fromMs, toMs }: Segment): Omit<SegmentRow, "id"> {
  return { log, from_seq: fromSeq, to_seq: toSeq, from_ms: fromMs, to_ms: toMs };
}

export function fromSegmentRow({ id, log, from_seq, to_seq, from_ms, to_ms }: SegmentRow): StoredSegment {
  return { id, log, fromSeq: from_seq, toSeq: to_seq, fromMs: from_ms, toMs: to_ms };
}

/** `numbers` with commas between. */
export type ListRow = { segment: number; numbers: string };

export const toListRow = ({ term, numbers }: TermList) => ({ term, numbers: numbers.join() });

export const fromListRow = ({ segment, numbers }: ListRow): StoredList => ({
  segment,
  numbers: JSON.parse(`[${numbers}]`),
});

export type StoredCheckpointRow = { log: string; tree_size: number; time_ms: number; jws: string };

export function fromCheckpointRow({ log, tree_size, time_ms, jws }: StoredCheckpointRow): CheckpointRow {
  return { log, treeSize: tree_size, timeMs: time_ms, jws };
}

export type TokenRow = {
  jti: string;
  client_id: string;
  workload: string | null;
  subject: string;
  origin_iss: string;
  origin_sub: string;
  audience: string;
  scope: string;
  chain: string;
  may_act: string | null;
  ancestors: string;
  rule_id: string;
  consent_id: string | null;
  confirmation: string | null;
  issued_at: number;
  expires_at: number;
  ending_keys: string | null;
};

/** A row of the version before has no keys. */
export function fromTokenRow(row: TokenRow): TokenRecord {
  const keys: Record<string, number> = JSON.parse(row.ending_keys ?? "{}");
  return defined({
    jti: row.jti,
    clientId: row.client_id,
    workload: row.workload ?? undefined,
    subject: row.subject,
    origin: { iss: row.origin_iss, sub: row.origin_sub },
    audience: row.audience,
    scope: row.scope,
    chain: JSON.parse(row.chain),
    mayAct: row.may_act === null ? undefined : JSON.parse(row.may_act),
    ancestors: JSON.parse(row.ancestors),
    ruleId: row.rule_id,
    consentId: row.consent_id ?? undefined,
    confirmation: row.confirmation === null ? undefined : JSON.parse(row.confirmation),
    issuedAtSeconds: row.issued_at,
    expiresAtSeconds: row.expires_at,
    endingKeys: Object.entries(keys).map(([key, sinceMs]): EndingKey => ({ key, sinceMs })),
  });
}

export type ConsentRow = {
  id: string;
  version: number;
  origin_iss: string;
  origin_sub: string;
  actor: string;
  targets: string;
  scopes: string;
  expires_at: number | null;
};

export function fromConsentRow(row: ConsentRow): Consent {
  return defined({
    id: row.id,
    version: row.version,
    origin: { iss: row.origin_iss, sub: row.origin_sub },
    actor: row.actor,
    targets: JSON.parse(row.targets),
    scopes: JSON.parse(row.scopes),
    expiresAtSeconds: row.expires_at ?? undefined,
  });
}

export type StoredConsentRow = ConsentRow & { withdrawn_at: number | null };

export function fromStoredConsentRow(row: StoredConsentRow): StoredConsent {
  const consent = fromConsentRow(row);
  return row.withdrawn_at === null ? consent : { ...consent, withdrawnAtSeconds: row.withdrawn_at };
}

export type StandingConsentRow = ConsentRow & { given_at: number | null };

export const fromStandingConsentRow = (row: StandingConsentRow): StandingConsent =>
  defined<StandingConsent>({ ...fromConsentRow(row), givenAtSeconds: row.given_at ?? undefined });

export type PolledDocumentRow = {
  kind: PolledKind;
  name: string;
  location: string;
  body: string;
  sequence: number | null;
  loaded_at: number;
};

export function toPolledRow({ sequence, loadedAtSeconds, ...row }: PolledRow): PolledDocumentRow {
  return { ...row, sequence: sequence ?? null, loaded_at: loadedAtSeconds };
}

export function fromPolledRow({ sequence, loaded_at, ...row }: PolledDocumentRow): PolledRow {
  return defined({ ...row, sequence: sequence ?? undefined, loadedAtSeconds: loaded_at });
}

export type SigningKeyRow = {
  kid: string;
  alg: string;
  purpose: KeyRow["purpose"];
  state: KeyRow["state"];
  public_jwk: string;
  private_jwe: string;
  created_at: number;
  since: number | null;
  replace_at: number | null;
  used_at: number | null;
};

export function toSigningKeyRow(key: KeyRow): SigningKeyRow {
  return {
    kid: key.kid,
    alg: key.alg,
    purpose: key.purpose,
    state: key.state,
    public_jwk: key.publicJwk,
    private_jwe: key.privateJwe,
    created_at: key.createdAtSeconds,
    since: key.sinceSeconds ?? null,
    replace_at: key.replaceAtSeconds ?? null,
    used_at: key.usedAtSeconds ?? null,
  };
}

export const fromSigningKeyRow = (row: SigningKeyRow): KeyRow =>
  defined({
    kid: row.kid,
    alg: row.alg,
    purpose: row.purpose,
    state: row.state,
    publicJwk: row.public_jwk,
    privateJwe: row.private_jwe,
    createdAtSeconds: row.created_at,
    sinceSeconds: row.since ?? undefined,
    replaceAtSeconds: row.replace_at ?? undefined,
    usedAtSeconds: row.used_at ?? undefined,
  });
