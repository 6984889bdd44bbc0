/** Key sets of trusted issuers and of configured clients, from a file, a URL, or where the metadata of the issuer name it. */
import {
  CLIENT_LAST_GOOD_SECONDS,
  FETCHED_SECONDS_MIN,
  KEY_SET_BYTES_MAX,
  LAST_GOOD_SECONDS,
  METADATA_BYTES_MAX,
} from "../../limits/fetching.ts";
import type { Result } from "../../result.ts";
import { defined } from "../../result.ts";
import type { IssuerKeys, RemoteDocument } from "../../settings/settings.ts";
import type { Jwk } from "../../spec/rfc7517.ts";
import { parseJwkSet } from "../../spec/rfc7517.ts";
import { discoveryUrls, parseIssuerMetadata } from "../../spec/rfc8414.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import { FRESH_BOUNDS, fetchDocument } from "./fetch.ts";
import type { KeySources, SourceOptions } from "./key-sources.ts";
import { keySources, looked, parsed, readFileText, SourceFailed } from "./key-sources.ts";
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
  const place = "discover" in where ? await discover(where) : where;
  const copy = known(place.url);
  const options = copy === undefined ? {} : { ifNoneMatch: copy.etag };
  const fetched = await fetchDocument(place, KEY_SET_BYTES_MAX, options);
  const refreshSeconds = freshSeconds(fetched, FRESH_BOUNDS);
  if (fetched.notModified && copy) return { value: copy.value, text: copy.text, refreshSeconds };
  const { text, etag, contentType } = fetched;
  if (!KEY_SET_TYPE.test(contentType)) throw new SourceFailed("the content type is not JSON");
  const value = parsed(parseJwkSet, text);
  return defined<LoadedKeySet>({ value, text, refreshSeconds, url: place.url, etag });
}

/** RFC8414-3-2, RFC8414-3.3-2: finds the `jwks_uri` in the metadata at the first location that has metadata. */
async function discover({ discover: issuer, ...reach }: Discovered): Promise<RemoteDocument> {
  let failure: unknown;
  for (const url of discoveryUrls(issuer)) {
    try {
      const { text } = await fetchDocument({ ...reach, url }, METADATA_BYTES_MAX);
      const { jwksUri } = parsed((document) => parseIssuerMetadata(document, issuer), text);
      // Private networks and authority configured for the issuer do not extend to a key set on another origin.
      const within = new URL(jwksUri).origin === new URL(issuer).origin;
      return within ? { ...reach, url: jwksUri } : { url: jwksUri, privateNetworks: [] };
    } catch (fault) {
      // Metadata that exists but is invalid or of another issuer ends the search.
      if (fault instanceof SourceFailed) throw fault;
      failure = fault;
    }
  }
  throw failure;
}

type Discovered = Extract<IssuerKeys, { discover: string }>;
