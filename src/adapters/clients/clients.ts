/** Clients by `client_id`: from the configuration, or from the store (made by the operator, or registered). */

import { REGISTRATION_CACHE_BYTES_MAX, REGISTRATION_CACHE_MAX } from "../../limits/clients.ts";
import type { Clients } from "../../ports.ts";
import type { RegisteredClient } from "../../records.ts";
import { whenReady } from "../../result.ts";
import { clientOfRegistration } from "../../settings/client-metadata.ts";
import type { Client, Settings } from "../../settings/settings.ts";
import { CLIENT_ID_PREFIX } from "../../spec/rfc7591.ts";
import { makeLruCache } from "../lru-cache.ts";
import type { ClientRows } from "../store/store.ts";

/** The client of a record under certain settings is kept, because a record with many keys is slow to read. */
type Made = {
  version: number;
  under: Settings;
  ceiling: string | undefined;
  client: Client | undefined;
  bytes: number;
};

export function openClients(settings: () => Settings, rows: Pick<ClientRows, "find">): Clients {
  const made = makeLruCache<Made>(REGISTRATION_CACHE_MAX, REGISTRATION_CACHE_BYTES_MAX);
  const makeOrFind = (row: RegisteredClient): Client | undefined => {
    const under = settings();
    const known = made.find(row.clientId);
    const ceiling = JSON.stringify(row.classCeiling);
    if (known?.version === row.version && known.under === under && known.ceiling === ceiling)
      return known.client;
    const client = clientOfRegistration(row, under);
    const bytes = JSON.stringify(row.metadata).length;
    made.keep(row.clientId, { version: row.version, under, ceiling, client, bytes });
    return client;
  };
  return {
    find(clientId) {
      // Whether there is a look-up depends on the form of the name alone, so the time of an answer tells nothing more.
      if (!clientId.startsWith(CLIENT_ID_PREFIX)) return settings().clients.get(clientId);
      return whenReady(rows.find(clientId), (row) =>
        row !== undefined && "metadata" in row ? makeOrFind(row) : row,
      );
    },
  };
}
