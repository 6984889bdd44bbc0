/** Rows as both stores keep them, and what they are to the rest: names of columns on one side, our own on the other. */
import type { Consent } from "../policy/decide.ts";
import type {
  AuditRecord,
  CheckpointRow,
  Client,
  SecretDigest,
  StoredConsent,
  TokenRecord,
} from "../ports.ts";
import type { ClientChange, KeptKind, KeptRow, SecretClient, StoredClient, StoredEvent } from "./store.ts";

export type EventRow = Omit<StoredEvent, "timeMs"> & { time_ms: number };

export function toEventRow({ timeMs, ...event }: StoredEvent): EventRow {
  return { ...event, time_ms: timeMs };
}

export function fromEventRow({ time_ms, ...event }: EventRow): StoredEvent {
  return { ...event, timeMs: time_ms };
}

export type AuditRow = Pick<EventRow, "log" | "seq" | "time_ms" | "body">;

export function fromAuditRow({ time_ms, log, seq, body }: AuditRow): AuditRecord {
  return { timeMs: time_ms, log, seq, body };
}

export type StoredCheckpointRow = { log: string; tree_size: number; time_ms: number; jws: string };

export function toCheckpointRow({ log, treeSize, timeMs, jws }: CheckpointRow): StoredCheckpointRow {
  return { log, tree_size: treeSize, time_ms: timeMs, jws };
}

export function fromCheckpointRow({ log, tree_size, time_ms, jws }: StoredCheckpointRow): CheckpointRow {
  return { log, treeSize: tree_size, timeMs: time_ms, jws };
}

export type TokenRow = {
  jti: string;
  client_id: string;
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
  issued_at: number;
  expires_at: number;
};

export function toTokenRow(token: TokenRecord): TokenRow {
  return {
    jti: token.jti,
    client_id: token.clientId,
    subject: token.subject,
    origin_iss: token.origin.iss,
    origin_sub: token.origin.sub,
    audience: token.audience,
    scope: token.scope,
    chain: JSON.stringify(token.chain),
    may_act: token.mayAct === undefined ? null : JSON.stringify(token.mayAct),
    ancestors: JSON.stringify(token.ancestors),
    rule_id: token.ruleId,
    consent_id: token.consentId ?? null,
    issued_at: token.issuedAtSeconds,
    expires_at: token.expiresAtSeconds,
  };
}

export function fromTokenRow(row: TokenRow): TokenRecord {
  return {
    jti: row.jti,
    clientId: row.client_id,
    subject: row.subject,
    origin: { iss: row.origin_iss, sub: row.origin_sub },
    audience: row.audience,
    scope: row.scope,
    chain: JSON.parse(row.chain),
    ...(row.may_act === null ? {} : { mayAct: JSON.parse(row.may_act) }),
    ancestors: JSON.parse(row.ancestors),
    ruleId: row.rule_id,
    ...(row.consent_id === null ? {} : { consentId: row.consent_id }),
    issuedAtSeconds: row.issued_at,
    expiresAtSeconds: row.expires_at,
  };
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

export function toConsentRow(consent: Consent): ConsentRow {
  return {
    id: consent.id,
    version: consent.version,
    origin_iss: consent.origin.iss,
    origin_sub: consent.origin.sub,
    actor: consent.actor,
    targets: JSON.stringify(consent.targets),
    scopes: JSON.stringify(consent.scopes),
    expires_at: consent.expiresAtSeconds ?? null,
  };
}

export function fromConsentRow(row: ConsentRow): Consent {
  return {
    id: row.id,
    version: row.version,
    origin: { iss: row.origin_iss, sub: row.origin_sub },
    actor: row.actor,
    targets: JSON.parse(row.targets),
    scopes: JSON.parse(row.scopes),
    ...(row.expires_at === null ? {} : { expiresAtSeconds: row.expires_at }),
  };
}

export type StoredConsentRow = ConsentRow & { withdrawn_at: number | null };

export function fromStoredConsentRow(row: StoredConsentRow): StoredConsent {
  const consent = fromConsentRow(row);
  return row.withdrawn_at === null ? consent : { ...consent, withdrawnAtSeconds: row.withdrawn_at };
}

export type NewClientRow = {
  client_id: string;
  method: string;
  grant_types: string;
  workload: string | null;
  default_target: string | null;
  created_at: number;
};

/** `secrets` is a list of SecretRow as JSON, the oldest first. */
export type ClientRow = NewClientRow & { version: number; disabled_at: number | null; secrets: string };

export type SecretRow = { digest: string; created_at: number; expires_at: number | null };

export function toClientRow({ add, atSeconds }: Extract<ClientChange, { add: unknown }>): NewClientRow {
  return {
    client_id: add.clientId,
    method: add.auth.method,
    grant_types: JSON.stringify(add.grantTypes),
    workload: add.workload ?? null,
    default_target: add.defaultTarget ?? null,
    created_at: atSeconds,
  };
}

export function toSecretRow({ digest, expiresAtSeconds }: SecretDigest, atSeconds: number): SecretRow {
  return { digest, created_at: atSeconds, expires_at: expiresAtSeconds ?? null };
}

export function fromClientRow(row: ClientRow): SecretClient {
  const secrets: readonly SecretRow[] = JSON.parse(row.secrets);
  const digests = secrets.map(({ digest, expires_at }) => ({
    digest,
    ...(expires_at === null ? {} : { expiresAtSeconds: expires_at }),
  }));
  return { ...commonOf(row), auth: { method: methodOf(row), secrets: digests } };
}

export function fromStoredClientRow(row: ClientRow): StoredClient {
  const secrets: readonly SecretRow[] = JSON.parse(row.secrets);
  return {
    ...commonOf(row),
    method: methodOf(row),
    version: row.version,
    secrets: secrets.map(({ created_at, expires_at }) => ({
      createdAtSeconds: created_at,
      ...(expires_at === null ? {} : { expiresAtSeconds: expires_at }),
    })),
    createdAtSeconds: row.created_at,
    ...(row.disabled_at === null ? {} : { disabledAtSeconds: row.disabled_at }),
  };
}

function commonOf(row: ClientRow): Omit<Client, "auth"> {
  return {
    clientId: row.client_id,
    grantTypes: JSON.parse(row.grant_types),
    ...(row.workload === null ? {} : { workload: row.workload }),
    ...(row.default_target === null ? {} : { defaultTarget: row.default_target }),
  };
}

export type KeptDocumentRow = {
  kind: KeptKind;
  name: string;
  location: string;
  body: string;
  sequence: number | null;
  loaded_at: number;
};

export function toKeptRow({ sequence, loadedAtSeconds, ...row }: KeptRow): KeptDocumentRow {
  return { ...row, sequence: sequence ?? null, loaded_at: loadedAtSeconds };
}

export function fromKeptRow({ sequence, loaded_at, ...row }: KeptDocumentRow): KeptRow {
  return { ...row, ...(sequence === null ? {} : { sequence }), loadedAtSeconds: loaded_at };
}

/** The only methods that a journal of ours writes. */
function methodOf({ method }: ClientRow): SecretClient["auth"]["method"] {
  return method as SecretClient["auth"]["method"];
}
