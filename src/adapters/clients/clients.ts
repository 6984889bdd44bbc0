/** Clients by what is on file: configured, made by the operator, or registered by themselves. */

import { REGISTRATION_CACHE_BYTES_MAX, REGISTRATION_CACHE_MAX } from "../../limits.ts";
import type { Clients } from "../../ports.ts";
import type { RegisteredClient } from "../../records.ts";
import { parseClientMetadata, toClient } from "../../settings/client-metadata.ts";
import type { Client, Settings } from "../../settings/settings.ts";
import { grantedScopes } from "../../spec/rfc7591.ts";
import { makeLruCache } from "../lru-cache.ts";
import type { ClientRows } from "../store/store.ts";

/** What a record came to: to read one takes a while, where it holds many keys. */
type Made = { version: number; under: Settings; client: Client | undefined; bytes: number };

export function openClients(settings: () => Settings, rows: Pick<ClientRows, "find">): Clients {
  const made = makeLruCache<Made>(REGISTRATION_CACHE_MAX, REGISTRATION_CACHE_BYTES_MAX);
  const makeOrFind = (row: RegisteredClient): Client | undefined => {
    const under = settings();
    const known = made.find(row.clientId);
    if (known?.version === row.version && known.under === under) return known.client;
    const client = fromRegistration(row, under);
    const bytes = JSON.stringify(row.metadata).length;
    made.keep(row.clientId, { version: row.version, under, client, bytes });
    return client;
  };
  return {
    async find(clientId) {
      const configured = settings().clients.get(clientId);
      if (configured !== undefined) return configured;
      const row = await rows.find(clientId);
      return row !== undefined && "metadata" in row ? makeOrFind(row) : row;
    },
  };
}

/** A record that no longer fits, since the rules became stricter or an authority was taken away, is nobody's. */
function fromRegistration(
  { clientId, metadata: members, registrationClass, ceiling, secrets }: RegisteredClient,
  { clientOrigins: origins, registration: { tlsAnchors } }: Settings,
): Client | undefined {
  const metadata = parseClientMetadata(members);
  if (!metadata.ok) return undefined;
  const { method, grantTypes = [], scope } = metadata.value;
  const scopes = grantedScopes(scope, ceiling);
  if (method === undefined || !scopes.ok) return undefined;
  const client = toClient({
    ...{ clientId, metadata: { ...metadata.value, method }, grantTypes, registrationClass, secrets, origins },
    source: "registration",
    ...(scopes.value !== undefined && { scopes: scopes.value }),
    ...(tlsAnchors !== undefined && { anchors: tlsAnchors }),
  });
  return client.ok ? client.value : undefined;
}
