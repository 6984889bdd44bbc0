/** Rows of clients, registered or created by the operator, and of initial access tokens, as in both stores. */

import type { InitialToken, RegisteredClient } from "../../records.ts";
import { defined } from "../../result.ts";
import { methodsWith } from "../../settings/authentication-methods.ts";
import type { Client, SecretDigest } from "../../settings/settings.ts";
import type { SecretClient, StoredClient } from "./store.ts";

export type NewClientRow = {
  client_id: string;
  method: string;
  grant_types: string;
  workload: string | null;
  default_target: string | null;
  created_at: number;
};

/** Method and grant types repeat the metadata, so that clients can be listed without parsing it. */
export type NewRegistrationRow = Pick<NewClientRow, "client_id" | "method" | "grant_types" | "created_at"> &
  RegistrationColumns & { version: number };

type RegistrationColumns = {
  metadata: string;
  registration_class: string;
  ceiling: string;
  token_generation: number;
};

/** `secrets` is a list of SecretRow as JSON, the oldest first. */
export type ClientRow = NewClientRow & { version: number; disabled_at: number | null; secrets: string } & (
    | { source: "operator" }
    /** Of a removed client, only `registration_class` is not null. */
    | ({ source: "registration"; class_ceiling: string | null } & RegistrationColumns)
  );

export type SecretRow = { digest: string; created_at: number; expires_at: number | null };

const OPERATOR_METHODS = methodsWith("secrets", "operator");

/**
 * CIMD-7.1-2: the row says where a client comes from, never the form of its `client_id`. Undefined for a method that this
 * version does not have: a newer one, which shares the store during an upgrade, may have more.
 */
export function fromClientRow(row: ClientRow): SecretClient | RegisteredClient | undefined {
  const rows: readonly SecretRow[] = JSON.parse(row.secrets);
  const secrets = rows.map(({ digest, expires_at }) =>
    defined<SecretDigest>({ digest, expiresAtSeconds: expires_at ?? undefined }),
  );
  if (row.source === "operator") {
    const method = OPERATOR_METHODS.find((one) => one === row.method);
    return method && { ...commonOf(row), auth: { method, secrets } };
  }
  return defined<RegisteredClient>({
    clientId: row.client_id,
    version: row.version,
    metadata: JSON.parse(row.metadata),
    registrationClass: row.registration_class,
    ceiling: JSON.parse(row.ceiling),
    classCeiling: row.class_ceiling === null ? undefined : JSON.parse(row.class_ceiling),
    tokenGeneration: row.token_generation,
    secrets,
    issuedAtSeconds: row.created_at,
  });
}

export function fromStoredClientRow(row: ClientRow): StoredClient {
  const secrets: readonly SecretRow[] = JSON.parse(row.secrets);
  return defined<StoredClient>({
    ...commonOf(row),
    registrationClass: row.source === "registration" ? row.registration_class : undefined,
    method: row.method,
    version: row.version,
    secrets: secrets.map(({ created_at, expires_at }) =>
      defined({ createdAtSeconds: created_at, expiresAtSeconds: expires_at ?? undefined }),
    ),
    createdAtSeconds: row.created_at,
    disabledAtSeconds: row.disabled_at ?? undefined,
  });
}

function commonOf(row: ClientRow): Omit<Client, "auth"> {
  return defined({
    clientId: row.client_id,
    source: row.source,
    grantTypes: JSON.parse(row.grant_types),
    workload: row.workload ?? undefined,
    defaultTarget: row.default_target ?? undefined,
  });
}

export type InitialTokenRow = {
  id: string;
  digest: string;
  registration_class: string;
  ceiling: string;
  uses: number;
  uses_max: number;
  created_at: number;
  expires_at: number;
  revoked_at: number | null;
};

export function fromInitialTokenRow(row: InitialTokenRow): InitialToken {
  return defined({
    id: row.id,
    digest: row.digest,
    registrationClass: row.registration_class,
    ceiling: JSON.parse(row.ceiling),
    uses: row.uses,
    usesMax: row.uses_max,
    createdAtSeconds: row.created_at,
    expiresAtSeconds: row.expires_at,
    revokedAtSeconds: row.revoked_at ?? undefined,
  });
}
