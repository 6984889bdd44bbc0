/** Clients by the URL of their metadata document, which is fetched when it is needed. */

import { DOCUMENT_BYTES_MAX } from "../../limits/fetching.ts";
import type { ClientDocuments, FetchRefused } from "../../ports.ts";
import type { Result } from "../../result.ts";
import type { AuthMethod } from "../../settings/authentication-methods.ts";
import {
  clientOfDocument,
  type DocumentSettings,
  documentPlace,
  parseClientDocument,
} from "../../settings/client-metadata.ts";
import type { Client } from "../../settings/settings.ts";
import type { ClientDocument } from "../../spec/cimd.ts";
import { type FetchContext, makeDocumentCache } from "../remote/cached-document.ts";

type DocumentOptions = FetchContext & { settings: () => DocumentSettings };

type Document = ClientDocument<AuthMethod>;
type Found = Result<Client, FetchRefused>;

export function openClientDocuments({ settings, ...context }: DocumentOptions): ClientDocuments {
  const documents = makeDocumentCache<Document>(
    {
      name: "document",
      bytesMax: DOCUMENT_BYTES_MAX,
      // CIMD-4-4, PROD-4.3-5: the content is JSON, also by a structured suffix.
      contentType: /^application\/(?:[\w!#$&^.+-]+\+)?json[ \t]*(?:;|$)/i,
      parse: parseClientDocument,
      // An expired document is never used, because what it says now is unknown.
      lastGoodSeconds: 0,
    },
    context,
  );
  /** The client of each document, made once for each state of the settings and not for each request. */
  const made = new WeakMap<Document, { under: DocumentSettings; client: Found }>();
  return {
    async find(url, source, until) {
      const under = settings();
      const place = documentPlace(url, under);
      if (!place.ok) return place;
      const document = await documents.get(place.value, source, until);
      if (!document.ok) return document;
      const known = made.get(document.value);
      if (known?.under === under) return known.client;
      const client = clientOfDocument(url, document.value, under);
      made.set(document.value, { under, client });
      return client;
    },
  };
}
