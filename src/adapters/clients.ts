/** Clients by what is on file: configured, made by the operator, or registered by themselves. */
import type { Client, Clients, RegisteredClient, Settings } from "../ports.ts";
import { grantedScopes, parseClientMetadata } from "../spec/rfc7591.ts";
import { toClient } from "./client-metadata.ts";
import type { ClientRows } from "./store.ts";

export function openClients(settings: () => Settings, rows: Pick<ClientRows, "find">): Clients {
  return {
    async find(clientId) {
      const configured = settings().clients.get(clientId);
      if (configured !== undefined) return configured;
      const row = await rows.find(clientId);
      return row !== undefined && "metadata" in row ? fromRegistration(row, settings()) : row;
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
