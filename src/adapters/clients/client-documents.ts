/** Clients by the URL of their metadata document, fetched when they come and checked against what is allowed now. */

import { DOCUMENT_BYTES_MAX } from "../../limits.ts";
import type { ClientDocuments, FetchRefused } from "../../ports.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import type { AuthMethod } from "../../settings/authentication-methods.ts";
import { parseClientDocument, reachable, toClient } from "../../settings/client-metadata.ts";
import type { Client, Settings } from "../../settings/settings.ts";
import type { ClientDocument as Document } from "../../spec/cimd.ts";
import { checkKeysOrigin, parseDocumentUrl } from "../../spec/cimd.ts";
import { grantedTypes, SERVED_GRANT_TYPES } from "../../spec/rfc7591.ts";
import { fitsBundle } from "../../spec/spiffe/client-auth.ts";
import type { Fetching } from "../remote/cached-document.ts";
import { fetchOnDemand } from "../remote/cached-document.ts";

type ClientDocument = Document<AuthMethod>;

/** What decides whom a document may speak for, and where it may be. */
export type DocumentSettings = Pick<Settings, "clientDocuments" | "clientOrigins" | "trustDomains">;

export type DocumentOptions = Fetching & { settings: () => DocumentSettings };

type Found = Result<Client, FetchRefused>;

export function openClientDocuments({ settings, ...fetching }: DocumentOptions): ClientDocuments {
  const documents = fetchOnDemand<ClientDocument>(
    {
      name: "document",
      bytesMax: DOCUMENT_BYTES_MAX,
      // CIMD-4-4, PROD-4.3-5
      contentType: /^application\/(?:[\w!#$&^.+-]+\+)?json[ \t]*(?:;|$)/i,
      parse: parseClientDocument,
      // cimd trap 9: once it has expired, nobody knows what it would say.
      lastGoodSeconds: 0,
    },
    fetching,
  );
  /** What each document came to, under the settings of then: made once, not for each request. */
  const made = new WeakMap<ClientDocument, { under: DocumentSettings; client: Found }>();
  return {
    async find(url, source) {
      const under = settings();
      const parsed = parseDocumentUrl(url);
      if (!parsed.ok) return err({ reason: parsed.error.kind });
      if (under.clientDocuments === undefined) return err({ reason: "documents_off" });
      // CIMD-8.9-1
      if (under.clientDocuments.origins?.has(parsed.value.origin) === false) {
        return err({ reason: "document_origin_refused" });
      }
      // CIMD-5-1, PROD-2.1-4: at exactly this URL.
      const document = await documents.get(reachable(url, under.clientOrigins), source);
      if (!document.ok) return document;
      const known = made.get(document.value);
      if (known?.under === under) return known.client;
      const client = makeClient(url, document.value, under);
      made.set(document.value, { under, client });
      return client;
    },
  };
}

function makeClient(url: string, metadata: ClientDocument, settings: DocumentSettings): Found {
  const { jwksUri, scope } = metadata;
  const { clientDocuments, clientOrigins: origins, trustDomains } = settings;
  if (jwksUri !== undefined && !clientDocuments?.foreignKeys) {
    const same = checkKeysOrigin(url, jwksUri);
    if (!same.ok) return err({ reason: same.error.kind });
  }
  if (!fitsBundle(metadata, trustDomains)) return err({ reason: "document_bundle_endpoint_differs" });
  const granted = grantedTypes(metadata.grantTypes, { grantTypes: SERVED_GRANT_TYPES });
  if (!granted.ok) return err({ reason: `document_${granted.error.reason}` });
  const client = toClient({
    // CIMD-3-8, CIMD-7.1-2
    ...{ clientId: url, source: "metadata_document", metadata, origins, grantTypes: granted.value },
    ...(scope !== undefined && { scopes: scope }),
  });
  return client.ok ? ok(client.value) : err({ reason: `document_${client.error.kind}` });
}
