/**
 * Public keys of others: trust bundles by trust domain, key sets by issuer or client, each in its own polled document.
 * SPIFFE Federation: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Federation.md, state of 1 July 2026
 * Covers 4 retrieval, 5.2.1 https_web, 5.2.2 https_spiffe, 6 polling and the end of a relationship.
 */
import { readFile } from "node:fs/promises";
import {
  CLIENT_LAST_GOOD_SECONDS,
  FETCHED_SECONDS_MIN,
  KEY_SET_BYTES_MAX,
  LAST_GOOD_SECONDS,
  METADATA_BYTES_MAX,
} from "../../limits/fetching.ts";
import type { Bundles, Clock, KeyFailure, KeySource, KeyWait, SourceState, Timers } from "../../ports.ts";
import type { Awaitable, Result } from "../../result.ts";
import { defined, err, ok, whenReady } from "../../result.ts";
import type { IssuerKeys, RemoteDocument, SpiffeEndpoint } from "../../settings/settings.ts";
import type { Jwk } from "../../spec/rfc7517.ts";
import { parseJwkSet, RSA_ALGORITHMS, selectKey } from "../../spec/rfc7517.ts";
import { decodeUtf8 } from "../../spec/rfc8259.ts";
import { discoveryUrls, parseIssuerMetadata } from "../../spec/rfc8414.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import type { Bundle } from "../../spec/spiffe/bundle.ts";
import { acceptsSuccessor, parseBundle, refreshSeconds } from "../../spec/spiffe/bundle.ts";
import { checkSigners, parseX509Svid } from "../../spec/spiffe/x509-svid.ts";
import { hash } from "../crypto/hash.ts";
import { verifyPresented } from "../crypto/x509.ts";
import type { PolledKind, PolledRow, PolledRows } from "../store/store.ts";
import type { Judge } from "./checked-agent.ts";
import { FRESH_BOUNDS, fetchDocument } from "./fetch.ts";
import { FetchFailed } from "./fetch-failed.ts";
import type { FetchResult } from "./fetch-timer.ts";
import { timeFetch } from "./fetch-timer.ts";
import type { Change, Loaded, Memory, PolledDocument } from "./polled-document.ts";
import { pollDocument } from "./polled-document.ts";

type SourceChange = (name: string, change: Change) => void;

export type SourceOptions = {
  clock: Clock;
  timers: Timers;
  /** Stores the last good copies, for all instances and across restarts. */
  rows: PolledRows;
  onChange: SourceChange;
  /** SFD-7.6-1: called for each request, to be logged. */
  onFetch?: (name: string, result: FetchResult) => void;
};

type File = { file: string };
type BundlePlace = File | RemoteDocument | SpiffeEndpoint;
type Remote = Exclude<IssuerKeys, File> | SpiffeEndpoint;

/** A key source whose members are replaced together when the configuration is reloaded. */
export type KeySources<Place> = KeySource & {
  /** Sources that stay keep their copies, and are fetched anew in the background at a reload by SIGHUP. */
  configure(sources: ReadonlyMap<string, Place>): void;
  states(): ReadonlyMap<string, SourceState>;
  stop(): void;
};

/**
 * SBN-3-2, SFD-4.2-4, SPCA-6-1, SPCA-6.1-3, PROD-2.4-3, PROD-4.4-7: one bundle for each trust domain, never merged, and
 * selected by the trust domain alone.
 */
export function bundleSources(options: SourceOptions): KeySources<BundlePlace> & Bundles {
  const { clock } = options;
  const sources = keySources<Bundle, BundlePlace>({
    ...options,
    kind: "trust_bundle",
    lastGoodSeconds: LAST_GOOD_SECONDS,
    load: (where, latest) => loadBundle(where, latest, clock),
    parse: parseBundle,
    accepts: acceptsSuccessor,
    sequence: (bundle) => bundle.sequence,
    keys: (bundle) => bundle.jwtKeys,
    size: ({ jwtKeys, x509Authorities }) => jwtKeys.length + x509Authorities.length,
    rsaAlgorithms: RSA_ALGORITHMS,
  });
  return {
    ...sources,
    async *anchors(trustDomain, until) {
      for await (const bundle of sources.copies(trustDomain, until)) {
        yield bundle.ok ? ok(authorities(bundle.value)) : bundle;
      }
    },
  };
}

async function loadBundle(
  where: BundlePlace,
  latest: Bundle | undefined,
  clock: Clock,
): Promise<Loaded<Bundle>> {
  const text = "file" in where ? await readText(where.file) : await fetchBundle(where, latest, clock);
  const value = parsed(parseBundle, text);
  return { value, text, refreshSeconds: "file" in where ? FETCHED_SECONDS_MIN : refreshSeconds(value) };
}

/** One look at a bundle, as the server would load it; an error says why it cannot be used. */
export const lookAtBundle = (where: BundlePlace, clock: Clock): Promise<Result<Bundle, string>> =>
  looked(loadBundle(where, undefined, clock));

/** Looks at a key set in the same way. */
export const lookAtKeySet = (where: IssuerKeys): Promise<Result<readonly Jwk[], string>> =>
  looked(loadKeySet(where, () => undefined));

async function looked<T>(loading: Promise<Loaded<T>>): Promise<Result<T, string>> {
  try {
    return ok((await loading).value);
  } catch (fault) {
    if (!(fault instanceof FetchFailed || fault instanceof SourceFailed)) throw fault;
    return err(fault.message);
  }
}

const authorities = ({ x509Authorities }: Bundle): readonly Uint8Array[] =>
  x509Authorities.map((text) => Uint8Array.fromBase64(text));

/** SFD-7.2-1: uses the configured profile, and no other one if that fails. */
async function fetchBundle(
  where: RemoteDocument | SpiffeEndpoint,
  latest: Bundle | undefined,
  clock: Clock,
): Promise<string> {
  if (!("endpointSpiffeId" in where)) return (await fetchDocument(where, KEY_SET_BYTES_MAX)).text;
  const anchors = authorities(latest ?? where.bootstrap);
  const judge = endpointJudge(where.endpointSpiffeId, anchors, clock);
  return (await fetchDocument(where, KEY_SET_BYTES_MAX, { judge })).text;
}

/**
 * SFD-5.2.2.4-1: the endpoint needs a valid X.509-SVID with exactly this ID, verified with the newest bundle. A bundle
 * that is too old for callers still serves here, because it is the newest statement of its trust domain.
 */
const endpointJudge =
  (spiffeId: string, anchors: readonly Uint8Array[], clock: Clock): Judge =>
  (presented) => {
    const path = verifyPresented(presented, anchors, clock.nowSeconds());
    if (!path.ok) return `the endpoint's certificate is refused (${path.error.kind})`;
    const [leaf] = path.value;
    const svid = leaf === undefined ? undefined : parseX509Svid(leaf);
    if (!svid?.ok) return `the endpoint's certificate is refused (${svid?.error.kind})`;
    if (svid.value.id !== spiffeId) return "the endpoint has another SPIFFE ID";
    const signers = checkSigners(path.value, svid.value.trustDomain);
    return signers.ok ? undefined : `the endpoint's certificate is refused (${signers.error.kind})`;
  };

/** The media types of a key set: that of RFC 7517 8.5.1, and plain JSON, which most servers use. */
export const KEY_SET_TYPE = /^application\/(?:jwk-set\+)?json[ \t]*(?:;|$)/i;

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
    rsaAlgorithms: ["RS256"],
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
    const text = await readText(where.file);
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

type Parse<T> = (text: string) => Result<T, { kind: string }>;

function parsed<T>(parse: Parse<T>, text: string): T {
  const value = parse(text);
  if (!value.ok) throw new SourceFailed(value.error.kind);
  return value.value;
}

/** A document was received, but it is not valid. */
class SourceFailed extends Error {
  override name = "SourceFailed";
}

type SourceKind<T, Place> = SourceOptions & {
  kind: PolledKind;
  lastGoodSeconds: number;
  load: (place: Place, latest: T | undefined) => Promise<Loaded<T>>;
  parse: Parse<T>;
  accepts: (old: T, next: T) => boolean;
  sequence: (value: T) => number | undefined;
  keys: (value: T) => readonly Jwk[];
  /** How many keys and authorities there are. */
  size: (value: T) => number;
  /** The algorithms for RSA keys without `alg`. */
  rsaAlgorithms: readonly string[];
};

type Sources<T, Place> = KeySources<Place> & {
  /** Yields the current copy, then the copy after each early look. */
  copies(name: string, until?: KeyWait): AsyncGenerator<Result<T, KeyFailure>, void, void>;
};

function keySources<T, Place extends File | Remote>(source: SourceKind<T, Place>): Sources<T, Place> {
  const { kind, lastGoodSeconds, accepts, keys, rsaAlgorithms, clock, timers, rows, onChange } = source;
  let sources = new Map<string, { where: string; polled: PolledDocument<T> }>();
  const same = (old: T, next: T): boolean => JSON.stringify(old) === JSON.stringify(next);
  const current = (name: string): Awaitable<Result<T, KeyFailure>> => {
    const polled = sources.get(name)?.polled;
    if (polled === undefined) return err("source_unknown");
    return whenReady(polled.current(), (value) =>
      value === undefined ? err("source_unavailable") : ok(value),
    );
  };
  const later = async function* (name: string, until?: KeyWait) {
    for await (const _ of sources.get(name)?.polled.looks(until) ?? []) yield await current(name);
  };
  const copies = async function* (name: string, until?: KeyWait) {
    yield await current(name);
    yield* later(name, until);
  };
  const poll = (name: string, where: Place): PolledDocument<T> => {
    const document = {
      load: (latest: T | undefined) => source.load(where, latest),
      accepts,
      same,
      size: source.size,
      clock,
      timers,
      lastGoodSeconds,
      onChange: (change: Change) => onChange(name, change),
    };
    // A file is on the disk already and needs no stored copy.
    if ("file" in where) return pollDocument(document);
    const load = observed(document.load, clock, (result) => source.onFetch?.(name, result));
    return pollDocument({ ...document, load, memory: memoryOf(source, name, where) });
  };
  return {
    copies,
    key(name, header, until) {
      /** Undefined: a later copy may have it. */
      const keyIn = (copy: Result<T, KeyFailure>): Result<Jwk, KeyFailure> | undefined => {
        if (!copy.ok) return copy;
        const found = selectKey(keys(copy.value), header, rsaAlgorithms);
        if (found.ok) return found;
        return found.error.kind === "key_unknown" ? undefined : err("key_unknown");
      };
      // RFC8725-3.10-v1, B8725-3.10-1: an unknown `kid` causes early looks at the document.
      const look = async (): Promise<Result<Jwk, KeyFailure>> => {
        for await (const copy of later(name, until)) {
          const found = keyIn(copy);
          if (found !== undefined) return found;
        }
        return err("key_unknown");
      };
      return whenReady(current(name), (copy) => keyIn(copy) ?? look());
    },
    configure(wanted) {
      // SFD-6.3-1: when a relationship ends, its keys are removed at once, from the store too.
      rows.retain(kind, [...wanted.keys()]).catch(() => undefined);
      const next = new Map<string, { where: string; polled: PolledDocument<T> }>();
      for (const [name, where] of wanted) {
        const text = JSON.stringify(where);
        const old = sources.get(name);
        const polled = old?.where === text ? old.polled : poll(name, where);
        next.set(name, { where: text, polled });
        if (polled === old?.polled) void polled.refresh();
      }
      for (const [name, { polled }] of sources) if (next.get(name)?.polled !== polled) polled.stop();
      sources = next;
    },
    states: () => new Map([...sources].map(([name, { polled }]) => [name, polled.state()])),
    stop() {
      for (const { polled } of sources.values()) polled.stop();
    },
  };
}

function observed<T>(
  load: (latest: T | undefined) => Promise<Loaded<T>>,
  clock: Clock,
  report: (result: FetchResult) => void,
) {
  return async (latest: T | undefined): Promise<Loaded<T>> => {
    const end = timeFetch(clock, report);
    try {
      const loaded = await load(latest);
      end();
      return loaded;
    } catch (fault) {
      const known = fault instanceof FetchFailed || fault instanceof SourceFailed;
      end(known ? fault.message : "a fault");
      throw fault;
    }
  };
}

/** SBN-3-1, SFD-5.1-2: a copy is stored by name and location, and not used for another location. */
function memoryOf<T>(
  { kind, rows, parse, sequence }: Omit<SourceKind<T, never>, "load">,
  name: string,
  where: Remote,
): Memory<T> {
  const location = locationOf(where);
  return {
    async recall() {
      const row = await rows.find(kind, name);
      if (row === undefined || row.location !== location) return undefined;
      const value = parse(row.body);
      if (!value.ok) return undefined;
      return { value: value.value, loadedAtMs: row.loadedAtSeconds * 1000 };
    },
    async remember({ value, text }, loadedAtMs) {
      const row = { kind, name, location, body: text, loadedAtSeconds: secondsOf(loadedAtMs) };
      await rows.save(defined<PolledRow>({ ...row, sequence: sequence(value) }));
    },
    redate: (loadedAtMs, nextMs) => rows.redate(kind, name, secondsOf(loadedAtMs), secondsOf(nextMs)),
  };
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000);

/** Everything that identifies the source: the URL, and how the server at it is authenticated. */
function locationOf({ privateNetworks: _, ...where }: Remote): string {
  return `${"discover" in where ? where.discover : where.url} ${hash.sha256(JSON.stringify(where))}`;
}

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file).catch(() => undefined);
  if (bytes === undefined) throw new SourceFailed("the file cannot be read");
  if (bytes.length > KEY_SET_BYTES_MAX) throw new SourceFailed("the file is too large");
  const text = decodeUtf8(bytes);
  if (!text.ok) throw new SourceFailed("the file is not UTF-8");
  return text.value;
}
