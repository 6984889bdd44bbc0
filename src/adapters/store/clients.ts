/** Clients, registrations and initial access tokens, in both stores: look-ups, and removal of expired rows. */
import type { RegisteredClient } from "../../records.ts";
import { defined } from "../../result.ts";
import { methodsWith } from "../../settings/authentication-methods.ts";
import type { SecretDigest } from "../../settings/settings.ts";
import { fromRow, pairsOf, type RowOf } from "./columns.ts";
import { type Engine, readRecords, sweepOf } from "./engine.ts";
import type { SecretClient, Store, StoredClient } from "./store.ts";
import { CLIENT, CLIENT_SECRET, INITIAL_TOKEN } from "./tables.ts";

/** `secrets` holds the rows of its secrets as one JSON list, the oldest first; `class_ceiling` is JSON too. */
type ClientRow = RowOf<typeof CLIENT.columns> & { secrets: string; class_ceiling: string | null };

export function clientRows(engine: Engine): Pick<Store, "clients" | "registrations"> {
  const { rows, selected, list } = engine;
  const found = `${selected(CLIENT, "c.")},
    (select cast(k.ceiling as text) from class_ceiling k where k.registration_class = c.registration_class)
      as class_ceiling,
    (select ${list(pairsOf(CLIENT_SECRET, "s."), "s.created_at, s.digest")}
      from client_secret s where s.client_id = c.client_id) as secrets`;
  const find: Store["clients"]["find"] = async (clientId) => {
    const [row] = await rows<ClientRow>(
      `select ${found} from client c where c.client_id = :clientId and c.disabled_at is null`,
      { clientId },
    );
    return row && clientOf(row);
  };
  return {
    clients: {
      find,
      list: async (clientId) => {
        const which = clientId === undefined ? "" : "where c.client_id = :clientId";
        const all = await rows<ClientRow>(
          `select ${found} from client c ${which} order by c.client_id`,
          clientId === undefined ? {} : { clientId },
        );
        return all.map(storedClientOf);
      },
    },
    registrations: {
      client: async (clientId) => {
        const client = await find(clientId);
        return client && "metadata" in client ? client : undefined;
      },
      ...registrationRows(engine),
    },
  };
}

function registrationRows(engine: Engine): Omit<Store["registrations"], "client"> {
  const { rows, change, json } = engine;
  const read = readRecords(engine);
  return {
    initialToken: async (digest) =>
      (await read(INITIAL_TOKEN, "from initial_token where digest = :digest", { digest }))[0],
    initialTokens: async () => read(INITIAL_TOKEN, "from initial_token order by created_at, id"),
    idle: async ({ open, ...since }) => {
      const { unusedSince, unusedOpenSince, idleSince } = since;
      const idle = await rows<{ client_id: string; had_token: number; is_open: number }>(
        `select client_id, had_token, is_open from (
           select client_id, created_at, last_token_at,
             case when last_token_at is null then 0 else 1 end as had_token,
             case when registration_class = :registrationClass and :grantType in (texts_of(grant_types))
               then 1 else 0 end as is_open
           from client where source = 'registration' and disabled_at is null
             and coalesce(last_token_at, created_at) <= :latest
         ) as registered
         where (had_token = 0 and created_at <= case when is_open = 1
             then cast(:unusedOpenSince as bigint) else cast(:unusedSince as bigint) end)
           or last_token_at <= :idleSince
         order by coalesce(last_token_at, created_at), client_id limit :limit`,
        { ...since, ...open, latest: Math.max(unusedSince, unusedOpenSince, idleSince) },
      );
      return idle.map((row) => ({
        clientId: row.client_id,
        hadToken: row.had_token === 1,
        isOpen: row.is_open === 1,
      }));
    },
    keepCeiling: async (name, ceiling) => {
      await change(
        `insert into class_ceiling (registration_class, ceiling) values (:name, ${json(":ceiling")})
         on conflict (registration_class) do update set ceiling = excluded.ceiling`,
        { name, ceiling: JSON.stringify(ceiling) },
      );
    },
    sweep: sweepOfClients(engine),
  };
}

function sweepOfClients(engine: Engine): Store["registrations"]["sweep"] {
  const removed = "source = 'registration' and disabled_at is not null and disabled_at < :before";
  const theirs = engine.among("client_id", `select client_id from client where ${removed} limit :limit`);
  const bare = "(select true from client_secret k where k.client_id = s.client_id limit 1) is null";
  const clients = sweepOf(engine, "client", ["client_id"], removed, bare);
  const tokens = sweepOf(engine, "initial_token", ["id"], "expires_at < :before or revoked_at < :before");
  return async (before, limit) => {
    await engine.remove(`delete from client_secret where ${theirs}`, { before, limit });
    return (await clients(before, limit)) + (await tokens(before, limit));
  };
}

/** The members that a registered client has until it is removed. */
type Registered = "metadata" | "registrationClass" | "ceiling" | "tokenGeneration";

const OPERATOR_METHODS = methodsWith("secrets", "operator");

const secretsOf = (row: ClientRow) =>
  (JSON.parse(row.secrets) as RowOf<typeof CLIENT_SECRET.columns>[]).map((secret) =>
    fromRow(CLIENT_SECRET, secret),
  );

/**
 * CIMD-7.1-2: the row says where a client comes from, never the form of its `client_id`. Undefined for a method that
 * this version does not have: a newer one, which shares the store during an upgrade, may have more.
 */
function clientOf(row: ClientRow): SecretClient | RegisteredClient | undefined {
  const client = fromRow(CLIENT, row);
  const { clientId, source, version, grantTypes, workload, defaultTarget, createdAtSeconds } = client;
  const secrets = secretsOf(row).map(({ digest, expiresAtSeconds }) =>
    defined<SecretDigest>({ digest, expiresAtSeconds }),
  );
  if (source === "operator") {
    const method = OPERATOR_METHODS.find((one) => one === client.method);
    if (method === undefined) return undefined;
    return defined<SecretClient>({
      clientId,
      source,
      grantTypes,
      workload,
      defaultTarget,
      auth: { method, secrets },
    });
  }
  const { metadata, registrationClass, ceiling, tokenGeneration } = client as Pick<
    RegisteredClient,
    Registered
  >;
  return defined<RegisteredClient>({
    clientId,
    version,
    metadata,
    registrationClass,
    ceiling,
    classCeiling: row.class_ceiling === null ? undefined : JSON.parse(row.class_ceiling),
    tokenGeneration,
    secrets,
    issuedAtSeconds: createdAtSeconds,
  });
}

function storedClientOf(row: ClientRow): StoredClient {
  const { metadata, ceiling, tokenGeneration, ...client } = fromRow(CLIENT, row);
  const secrets = secretsOf(row).map(({ createdAtSeconds, expiresAtSeconds }) =>
    defined<StoredClient["secrets"][number]>({ createdAtSeconds, expiresAtSeconds }),
  );
  const { client_name: claimedName, contacts } = metadata ?? {};
  return defined<StoredClient>({
    ...client,
    secrets,
    claimedName: typeof claimedName === "string" ? claimedName : undefined,
    contacts: Array.isArray(contacts) ? contacts.map(String) : undefined,
  });
}
