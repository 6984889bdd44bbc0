/** Changes of clients, registrations and initial access tokens on node:sqlite, in the transaction of their batch. */
import type { DatabaseSync } from "node:sqlite";
import type { RegistrationChange } from "../../../records.ts";
import type { SecretDigest } from "../../../settings/settings.ts";
import { toClientRow, toInitialTokenRow, toRegistrationRow, toSecretRow } from "../client-rows.ts";
import type { ClientChange, InitialTokenChange, StoreEntry, StorePrecondition } from "../store.ts";

type ClientChanges = {
  failedBy(entry: StoreEntry): readonly StorePrecondition[];
  write(entry: StoreEntry): void;
};

/** The preconditions and the writes of these changes, both to be used inside the transaction of the batch. */
export function clientChangesOn(db: DatabaseSync): ClientChanges {
  const statements = prepareAll(db);
  return {
    failedBy({ event, client, registration, initialToken }) {
      const failed: StorePrecondition[] = [];
      if (client !== undefined && !isPossible(statements, client)) failed.push("client_current");
      if (registration !== undefined) {
        failed.push(...failedByRegistration(statements, registration, Math.floor(event.timeMs / 1000)));
      }
      if (initialToken !== undefined && !isPossibleFor(statements, initialToken)) {
        failed.push("initial_token_current");
      }
      return failed;
    },
    write({ client, registration, initialToken }) {
      if (client !== undefined) changeClient(statements, client);
      if (registration !== undefined) changeRegistration(statements, registration);
      if (initialToken !== undefined) changeInitialToken(statements, initialToken);
    },
  };
}

type Statements = ReturnType<typeof prepareAll>;

function prepareAll(db: DatabaseSync) {
  return {
    clientKnown: db.prepare("select 1 from client where client_id = ?"),
    clientStands: db.prepare(
      "select version, source from client where client_id = ? and disabled_at is null",
    ),
    secretOwner: db.prepare("select client_id from client_secret where digest = ?"),
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
    registered: db.prepare(
      `select count(*) as count from client
       where source = 'registration' and disabled_at is null and registration_class = ?`,
    ),
    registrationStands: db.prepare(
      `select version, coalesce(last_token_at, created_at) as idle_since from client
       where client_id = ? and source = 'registration' and disabled_at is null`,
    ),
    insertRegistration: db.prepare(
      `insert into client (source, client_id, version, method, grant_types, metadata, registration_class, ceiling,
         token_generation, created_at)
       values ('registration', :client_id, :version, :method, :grant_types, :metadata, :registration_class,
         :ceiling, :token_generation, :created_at)`,
    ),
    updateRegistration: db.prepare(
      `update client set version = :version, method = :method, grant_types = :grant_types, metadata = :metadata,
         ceiling = :ceiling, token_generation = :token_generation
       where client_id = :client_id`,
    ),
    removeRegistration: db.prepare(
      `update client set disabled_at = ?, version = version + 1, metadata = null, ceiling = null,
         token_generation = null
       where client_id = ?`,
    ),
    deleteOtherSecrets: db.prepare(
      "delete from client_secret where client_id = ? and digest not in (select value from json_each(?))",
    ),
    keepSecret: db.prepare(
      `insert into client_secret (client_id, digest, created_at, expires_at)
       values (:client_id, :digest, :created_at, :expires_at)
       on conflict (digest) do update set expires_at = excluded.expires_at`,
    ),
    usable: db.prepare(
      `select 1 from initial_token
       where id = ? and revoked_at is null and expires_at > ? and uses < uses_max`,
    ),
    spendInitialToken: db.prepare("update initial_token set uses = uses + 1 where id = ?"),
    initialTokenKnown: db.prepare("select 1 from initial_token where id = ? or digest = ?"),
    initialTokenStands: db.prepare("select 1 from initial_token where id = ? and revoked_at is null"),
    insertInitialToken: db.prepare(
      `insert into initial_token (id, digest, registration_class, ceiling, uses, uses_max, created_at, expires_at,
         revoked_at)
       values (:id, :digest, :registration_class, :ceiling, :uses, :uses_max, :created_at, :expires_at,
         :revoked_at)`,
    ),
    revokeInitialToken: db.prepare("update initial_token set revoked_at = ? where id = ?"),
  };
}

// --- clients created by the operator --------------------------------------------------------------------------

function isPossible(statements: Statements, change: ClientChange): boolean {
  const { clientKnown, clientStands, secretOwner } = statements;
  if ("add" in change) {
    const { clientId, auth } = change.add;
    if (clientKnown.get(clientId) !== undefined) return false;
    return auth.secrets.every(({ digest }) => secretOwner.get(digest) === undefined);
  }
  if ("disable" in change) return clientStands.get(change.disable) !== undefined;
  if (secretOwner.get(change.secret.digest) !== undefined) return false;
  const standing = clientStands.get(change.rotate);
  return standing?.version === change.version && standing.source === "operator";
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

// --- registrations --------------------------------------------------------------------------------------------

function failedByRegistration(
  statements: Statements,
  change: RegistrationChange,
  nowSeconds: number,
): readonly StorePrecondition[] {
  const { clientKnown, secretOwner, registered, registrationStands, usable } = statements;
  if ("remove" in change) {
    const standing = registrationStands.get(change.remove);
    const { unusedSince = Number.MAX_SAFE_INTEGER, version = standing?.version } = change;
    const stands = standing?.version === version && Number(standing?.idle_since) <= unusedSince;
    return stands ? [] : ["registration_current"];
  }
  const { clientId, version, secrets } = "register" in change ? change.register : change.update;
  // RFC7591-3.2.1-4: no two clients have the same secret.
  const owners = secrets.map(({ digest }) => secretOwner.get(digest)?.client_id ?? clientId);
  const areFree = owners.every((owner) => owner === clientId);
  if ("update" in change) {
    const stands = registrationStands.get(clientId)?.version === version - 1;
    return stands && areFree ? [] : ["registration_current"];
  }
  const failed: StorePrecondition[] = [];
  const { initialTokenId: id, clientsMax } = change;
  if (id !== undefined && usable.get(id, nowSeconds) === undefined) failed.push("initial_token_usable");
  if (Number(registered.get(change.register.registrationClass)?.count) >= clientsMax)
    failed.push("registrations_below");
  if (clientKnown.get(clientId) !== undefined || !areFree) failed.push("registration_current");
  return failed;
}

function changeRegistration(statements: Statements, change: RegistrationChange): void {
  if ("remove" in change) {
    // RFC7592-5-5: removes metadata and secrets; an ending, written with it, ends the tokens.
    statements.removeRegistration.run(change.atSeconds, change.remove);
    statements.deleteOtherSecrets.run(change.remove, "[]");
  } else if ("update" in change) {
    // RFC7592-2.2-3: replaces the metadata, and removes secrets that are not listed again.
    const { update, atSeconds } = change;
    const { registration_class, created_at, ...row } = toRegistrationRow(update);
    statements.updateRegistration.run(row);
    const digests = update.secrets.map(({ digest }) => digest);
    statements.deleteOtherSecrets.run(update.clientId, JSON.stringify(digests));
    for (const secret of update.secrets) {
      statements.keepSecret.run({ client_id: update.clientId, ...toSecretRow(secret, atSeconds) });
    }
  } else {
    const { clientId, secrets, issuedAtSeconds } = change.register;
    statements.insertRegistration.run(toRegistrationRow(change.register));
    for (const secret of secrets) {
      statements.insertSecret.run({ client_id: clientId, ...toSecretRow(secret, issuedAtSeconds) });
    }
    // RFC7591-3-3: counts the use of the initial access token.
    if (change.initialTokenId !== undefined) statements.spendInitialToken.run(change.initialTokenId);
  }
}

// --- initial access tokens ------------------------------------------------------------------------------------

function isPossibleFor(statements: Statements, change: InitialTokenChange): boolean {
  if ("revoke" in change) return statements.initialTokenStands.get(change.revoke) !== undefined;
  return statements.initialTokenKnown.get(change.add.id, change.add.digest) === undefined;
}

function changeInitialToken(statements: Statements, change: InitialTokenChange): void {
  if ("add" in change) statements.insertInitialToken.run(toInitialTokenRow(change.add));
  else statements.revokeInitialToken.run(change.atSeconds, change.revoke);
}
