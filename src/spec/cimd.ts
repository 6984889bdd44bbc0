/**
 * OAuth Client ID Metadata Document, draft-ietf-oauth-client-id-metadata-document-02, and where it is stricter the
 * text proposed for -03. Covers 3 the identifier, 4 the document, 4.1 prohibited members, 8.2 authentication.
 * Elsewhere: CIMD 3 settings/client-metadata.ts, spec/rfc3986.ts; CIMD 4 adapters/clients/client-documents.ts,
 * adapters/remote/cached-document.ts, adapters/remote/fetch.ts; CIMD 4.1 settings/authentication-methods.ts; CIMD 5
 * adapters/remote/fetch.ts, config/client-schema.ts, flows/find-client.ts, settings/client-metadata.ts; CIMD 5.2
 * adapters/remote/cached-document.ts, adapters/remote/fetch-budget.ts, spec/rfc9111.ts; CIMD 6 http/discovery.ts; CIMD
 * 7.1 adapters/store/clients.ts, audit/event.ts, config/clients.ts, settings/authentication-methods.ts,
 * settings/client-metadata.ts; CIMD 7.2 flows/find-client.ts; CIMD 8.2 flows/verify-assertion.ts,
 * settings/authentication-methods.ts, settings/client-metadata.ts, settings/client.ts; CIMD 8.5
 * people/http/known-as.ts; CIMD 8.6 config/reader.ts, settings/client-metadata.ts, spec/rfc7591-members.ts; CIMD 8.7
 * adapters/remote/fetch.ts; CIMD 8.9 settings/client-metadata.ts.
 */

import { JSON_DEPTH_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { type FetchUrl, parseFetchUrl, type UrlFailure } from "./rfc3986.ts";
import { type ClientMetadata, givenMembers, isGiven, metadataParser } from "./rfc7591.ts";
import type { MetadataFailure } from "./rfc7591-errors.ts";
import type { Methods } from "./rfc7591-members.ts";
import { isJsonObject, type Json, type JsonFailure, type JsonObject, parseJson } from "./rfc8259.ts";

export const DRAFT = "draft-ietf-oauth-client-id-metadata-document-02";

// --- the identifier (3) -------------------------------------------------------------------------------------

/** PROD-2.1-2, PROD-4.3-3: only a `client_id` of this form is fetched. */
export function isDocumentUrl(clientId: string): boolean {
  return clientId.startsWith("https://");
}

type DocumentUrlFailure = UrlFailure | { kind: "url_query" | "url_path_bare" };

/** `text` is what a `client_id` is compared by (CIMD-3-8); the parsed URL is kept so that a request parses it once. */
export type DocumentUrl = { readonly text: string; readonly parsed: FetchUrl };

/** The rules for every URL that is fetched, and those for a `client_id`. */
export function parseDocumentUrl(text: string): Result<DocumentUrl, DocumentUrlFailure> {
  const url = parseFetchUrl(text);
  if (!url.ok) return url;
  // CIMD-3-4: checked in the text, because the parser adds a missing path.
  if (!text.includes("/", "https://".length)) return err({ kind: "url_path_missing" });
  // CIMD-3-6, CIMD-3-9: discouraged by the draft and refused here, because paths suffice to tell clients apart.
  if (url.value.search !== "") return err({ kind: "url_query" });
  if (url.value.pathname === "/") return err({ kind: "url_path_bare" });
  return ok({ text, parsed: url.value });
}

// --- the document (4) ---------------------------------------------------------------------------------------

export type ClientDocument<M extends string = string> = ClientMetadata<M> & { method: M };

type Reason =
  | JsonFailure["kind"]
  | MetadataFailure["reason"]
  | "not_object"
  | "client_id_missing"
  | "client_id_differs"
  | "secret"
  | "method_malformed"
  | "methods_malformed"
  | "method_secret"
  | "method_unsupported"
  | "methods_disagree"
  | "public";
type DocumentFailure = { kind: `document_${Reason}` };

const refused = (reason: Reason) => err({ kind: `document_${reason}` } satisfies DocumentFailure);

/** Reads the documents of clients that may use these methods (CIMD-8.2-1). */
export function documentParser<M extends string>(methods: Methods<M>) {
  const parseMetadata = metadataParser(methods);
  const isServed = (name: string): name is M => Object.hasOwn(methods, name);
  /** The client that the document at `url` describes, or the first reason why it is refused. */
  return (url: string, text: string): Result<ClientDocument<M>, DocumentFailure> => {
    const json = parseJson(text, JSON_DEPTH_MAX);
    if (!json.ok) return refused(json.error.kind);
    const document = json.value;
    if (!isJsonObject(document)) return refused("not_object");
    // CIMD-4-1, PROD-2.2-2: the document must name its client.
    if (typeof document.client_id !== "string") return refused("client_id_missing");
    // CIMD-4-2, MCP-R.1-2, PROD-2.2-3, CIMD-3-8: it must name exactly its URL, or a document could describe another
    // client.
    if (document.client_id !== url) return refused("client_id_differs");
    // CIMD-4.1-2: refused with any value, because everyone can read the document.
    if ("client_secret" in document || "client_secret_expires_at" in document) return refused("secret");
    const given = givenMembers(document);
    const method = readMethod(document, isServed);
    if (!method.ok) return method;
    // A client that proves nothing can only be sent codes, and this one names no place for them.
    if (method.value === "none" && given.redirect_uris === undefined) return refused("public");
    // CIMD-4.3-1, CIMD-4.1-4: a software statement is ignored with all its claims.
    const { software_statement: _, ...sent } = given;
    // CIMD-4.1-3, CIMD-8.2-3, CIMD-8.6-5: the rules for all client metadata apply.
    const metadata = parseMetadata({ ...sent, token_endpoint_auth_method: method.value });
    if (!metadata.ok) return refused(metadata.error.reason);
    // MCPC-D-8: without a name a user is shown the host, on which they rely in any case.
    return ok({ ...metadata.value, method: method.value });
  };
}

/** CIMD-8.2-2: the client must use the method that its document declares. */
function readMethod<M extends string>(
  document: JsonObject,
  isServed: (name: string) => name is M,
): Result<M, DocumentFailure> {
  const { token_endpoint_auth_method: named } = document;
  const method = isGiven(named) ? named : undefined;
  // An empty list stays one: it says that no method is supported, and not that the client needs none.
  const methods = document.token_endpoint_auth_methods_supported ?? undefined;
  if (!(method === undefined || typeof method === "string")) return refused("method_malformed");
  if (!(methods === undefined || isTexts(methods))) return refused("methods_malformed");
  // CIMD-4.1-1, CIMD-4.1-4: a method with a shared secret is refused even beside others, because the client may intend
  // to use it.
  if ([method, ...(methods ?? [])].some((one) => one?.startsWith("client_secret"))) {
    return refused("method_secret");
  }
  // CIMD-8.2-5: the one method must be in the list.
  if (method !== undefined && methods?.includes(method) === false) return refused("methods_disagree");
  // CIMD-8.2-4: without either member the method is `none`, not the default of RFC 7591.
  if (method === "none" || (method === undefined && methods === undefined)) {
    const none = "none";
    return isServed(none) ? ok(none) : refused("public");
  }
  // CIMD-8.2-4: a list alone never means `none`; the first served method in it is used.
  const proving = (method === undefined ? methods : [method])?.filter((one) => one !== "none");
  const served = proving?.find(isServed);
  return served === undefined ? refused("method_unsupported") : ok(served);
}

const isTexts = (value: Json): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

type KeysOriginFailure = { kind: "document_keys_foreign" };

/** Keys at another origin would let that origin decide who the client is. */
export function checkKeysOrigin(document: URL, jwksUri: string): Result<undefined, KeysOriginFailure> {
  return URL.parse(jwksUri)?.origin === document.origin
    ? ok(undefined)
    : err({ kind: "document_keys_foreign" });
}
