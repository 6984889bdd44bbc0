/** Key sets of trusted issuers and of configured clients, from a file, a URL, or where the metadata of the issuer name it. */
import {
  CLIENT_LAST_GOOD_SECONDS,
  FETCHED_SECONDS_MIN,
  KEY_SET_BYTES_MAX,
  LAST_GOOD_SECONDS,
  METADATA_BYTES_MAX,
} from "../../limits/fetching.ts";
import { SHOWN_TEXT_CHARS_MAX } from "../../limits/input.ts";
import { defined, type Result } from "../../result.ts";
import type { IssuerKeys, RemoteDocument } from "../../settings/settings.ts";
import { type Jwk, parseJwkSet } from "../../spec/rfc7517.ts";
import { discoveryUrls, parseIssuerMetadata } from "../../spec/rfc8414.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import { type Fetched, type FetchOptions, FRESH_BOUNDS, fetchDocument } from "./fetch.ts";
import { FetchFailed } from "./fetch-failed.ts";
import {
  type KeySources,
  keySources,
  looked,
  parsed,
  readFileText,
  SourceFailed,
  type SourceOptions,
} from "./key-sources.ts";
import type { Loaded } from "./polled-document.ts";

/** The media types of a key set: that of RFC 7517 8.5.1, and plain JSON, which most servers use. */
export const KEY_SET_TYPE = /^application\/(?:jwk-set\+)?json[ \t]*(?:;|$)/i;

/** Looks at a key set in the same way. */
export const lookAtKeySet = (where: IssuerKeys): Promise<Result<readonly Jwk[], string>> =>
  looked(loadKeySet(where, () => undefined));

/** RFC8725-3.8-v1, RFC7515-10.3-v1, PROD-2.2-14: key sets by issuer or client, from where the operator configured. */
export function jwksSources(
  kind: "issuer_keys" | "client_keys",
  options: SourceOptions,
): KeySources<IssuerKeys> {
  /** The URL and `etag` of each copy that this process fetched, for a conditional request. */
  const tags = new WeakMap<readonly Jwk[], { url: string; etag: string; text: string }>();
  return keySources<readonly Jwk[], IssuerKeys>({
    ...options,
    kind,
    lastGoodSeconds: kind === "client_keys" ? CLIENT_LAST_GOOD_SECONDS : LAST_GOOD_SECONDS,
    load: async (where, latest) => {
      const loaded = await loadKeySet(where, (url) => {
        const tag = latest && tags.get(latest);
        return latest && tag?.url === url ? { ...tag, value: latest } : undefined;
      });
      const { url, etag, value, text } = loaded;
      if (url !== undefined && etag !== undefined) tags.set(value, { url, etag, text });
      return loaded;
    },
    parse: parseJwkSet,
    accepts: () => true,
    sequence: () => undefined,
    keys: (keys) => keys,
    size: (keys) => keys.length,
    // JWKS-D-3: an issuer has a list of algorithms, which was asked before; a client has none.
    rsaAlgorithms: kind === "issuer_keys" ? ["RS256", "PS256"] : ["RS256"],
  });
}

type KnownKeySet = { value: readonly Jwk[]; text: string; etag: string };
type LoadedKeySet = Loaded<readonly Jwk[]> & { url?: string; etag?: string };

/** `known` is the copy of this URL that the server may confirm instead of sending it again. */
async function loadKeySet(
  where: IssuerKeys,
  known: (url: string) => KnownKeySet | undefined,
): Promise<LoadedKeySet> {
  if ("file" in where) {
    const text = await readFileText(where.file);
    return { value: parsed(parseJwkSet, text), text, refreshSeconds: FETCHED_SECONDS_MIN };
  }
  const url = "discover" in where ? await discover(where) : where.url;
  const copy = known(url);
  const fetched = await fetchOf(where, url, KEY_SET_BYTES_MAX, copy?.etag);
  const refreshSeconds = freshSeconds(fetched, FRESH_BOUNDS);
  if (fetched.notModified && copy) return { value: copy.value, text: copy.text, refreshSeconds };
  const { text, etag, contentType } = fetched;
  if (!KEY_SET_TYPE.test(contentType)) throw new SourceFailed("the content type is not JSON");
  const value = parsed(parseJwkSet, text);
  return defined<LoadedKeySet>({ value, text, refreshSeconds, url, etag });
}

type Remote = Exclude<IssuerKeys, { file: string }>;

/** RFC8414-3-2, RFC8414-3.3-2: finds the `jwks_uri` in the metadata at the first location that has metadata. */
async function discover(where: Extract<Remote, { discover: string }>): Promise<string> {
  let failure: unknown;
  for (const url of discoveryUrls(where.discover)) {
    try {
      const { text } = await fetchOf(where, url, METADATA_BYTES_MAX);
      return parsed((document) => parseIssuerMetadata(document, where.discover), text).jwksUri;
    } catch (fault) {
      // Metadata that exists but is invalid or of another issuer ends the search.
      if (fault instanceof SourceFailed) throw fault;
      failure = fault;
    }
  }
  throw failure;
}

/** FEDC-D-9: what the operator permits for an issuer holds for all of its documents, wherever its metadata put the keys. */
async function fetchOf(where: Remote, url: string, bytesMax: number, ifNoneMatch?: string): Promise<Fetched> {
  const { authorization, privateNetworks, ca } = where;
  const [named, what] =
    "url" in where ? [where.url, ""] : [where.discover, `${url.slice(0, SHOWN_TEXT_CHARS_MAX)}: `];
  // FEDC-D-8: metadata could name any origin, which would then have the token.
  const isNamed = new URL(url).origin === new URL(named).origin;
  const token = authorization && isNamed ? await readBearer(authorization.file) : undefined;
  try {
    const options = defined<FetchOptions>({ ifNoneMatch, authorization: token });
    return await fetchDocument(defined<RemoteDocument>({ url, privateNetworks, ca }), bytesMax, options);
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    const { reason, status = 0, retryAfter } = fault;
    const isRefused = status === 401 || status === 403;
    const remedy = isRefused ? `: ${remedyOf(authorization !== undefined, isNamed)}` : "";
    throw new FetchFailed(reason, `${what}${fault.message}${remedy}`, fault.status, retryAfter);
  }
}

/** FEDC-D-10: what a server wants that refuses its document. */
function remedyOf(hasToken: boolean, isNamed: boolean): string {
  if (!hasToken) return "it wants a token, which authorization names; or copy the keys into a file";
  return isNamed
    ? "it does not let the token of authorization read this"
    : "authorization is not sent to another origin than that of the issuer: name this address in url";
}

/** RFC 6750 2.1: a token as the field Authorization has it. */
const BEARER = /^[\w.~+/-]+=*$/;

/** FEDC-D-8: a cluster renews the file, so it is read for each fetch. */
async function readBearer(file: string): Promise<string> {
  const text = await readFileText(file).catch(({ message }: Error) => {
    throw new SourceFailed(`authorization: ${message}`);
  });
  const token = text.replace(/\r?\n$/, "");
  if (!BEARER.test(token)) throw new SourceFailed("authorization: the file has no token");
  return `Bearer ${token}`;
}
