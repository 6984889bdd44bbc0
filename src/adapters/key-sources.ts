/** Public keys of others: trust bundles by trust domain, key sets by issuer, each in its own kept document. */
import { readFile } from "node:fs/promises";
import type { Bundles, Clock, KeyFailure, KeySource, RemoteDocument } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { decodeUtf8 } from "../spec/json.ts";
import {
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
  KEY_SET_BYTES_MAX,
} from "../spec/limits.ts";
import type { Jwk } from "../spec/rfc7517.ts";
import { parseJwkSet, RSA_ALGORITHMS, selectKey } from "../spec/rfc7517.ts";
import type { Bundle } from "../spec/spiffe/bundle.ts";
import { acceptsSuccessor, parseBundle, refreshSeconds } from "../spec/spiffe/bundle.ts";
import { FetchFailed, fetchDocument } from "./fetch.ts";
import type { Change, Kept, Loaded } from "./kept-document.ts";
import { keepDocument } from "./kept-document.ts";

export type SourceChange = (name: string, change: Change) => void;

type Where = { file: string } | RemoteDocument;

/** A key source whose members are replaced as one when the configuration is read again. */
export type KeySources = KeySource & {
  configure(sources: ReadonlyMap<string, Where>): void;
  stop(): void;
};

/** SBN-3-2, SFD-4.2-4: by trust domain, never merged; a bundle is chosen by the domain alone. */
export function bundleSources(clock: Clock, onChange: SourceChange): KeySources & Bundles {
  const sources = keySources<Bundle>({
    load: async (where) => {
      const bundle = parseBundle("file" in where ? await readText(where.file) : (await fetchSet(where)).text);
      if (!bundle.ok) throw new FetchFailed(bundle.error.kind);
      const seconds = "file" in where ? FETCHED_SECONDS_MIN : refreshSeconds(bundle.value);
      return { value: bundle.value, refreshSeconds: seconds };
    },
    accepts: acceptsSuccessor,
    keys: (bundle) => bundle.jwtKeys,
    rsaAlgorithms: RSA_ALGORITHMS,
    clock,
    onChange,
  });
  return {
    ...sources,
    async anchors(trustDomain) {
      const bundle = await sources.current(trustDomain);
      if (!bundle.ok) return bundle;
      return ok(bundle.value.x509Authorities.map((text) => Uint8Array.fromBase64(text)));
    },
  };
}

/** RFC8725-3.8-v1, PROD-2.2-14: by issuer or client, from the URL that the operator gave for it. */
export function jwksSources(clock: Clock, onChange: SourceChange): KeySources {
  return keySources<readonly Jwk[]>({
    load: async (where) => {
      if ("file" in where) throw new FetchFailed("an issuer's keys are fetched");
      const { text, contentType, cacheControl } = await fetchSet(where);
      if (!/^application\/(jwk-set\+)?json *(;|$)/i.test(contentType)) throw new FetchFailed("no JSON");
      const keys = parseJwkSet(text);
      if (!keys.ok) throw new FetchFailed(keys.error.kind);
      return { value: keys.value, refreshSeconds: freshSeconds(cacheControl) };
    },
    accepts: () => true,
    keys: (keys) => keys,
    rsaAlgorithms: ["RS256"],
    clock,
    onChange,
  });
}

type SourceKind<T> = {
  load: (where: Where) => Promise<Loaded<T>>;
  accepts: (old: T, next: T) => boolean;
  keys: (value: T) => readonly Jwk[];
  /** What an RSA key that names no algorithm may be used with. */
  rsaAlgorithms: readonly string[];
  clock: Clock;
  onChange: SourceChange;
};

type Sources<T> = KeySources & {
  /** The copy of now, whole. */
  current(name: string): Promise<Result<T, KeyFailure>>;
  lookAgain(name: string): Promise<void>;
};

function keySources<T>({ load, accepts, keys, rsaAlgorithms, clock, onChange }: SourceKind<T>): Sources<T> {
  let sources = new Map<string, { where: string; kept: Kept<T> }>();
  const same = (old: T, next: T): boolean => JSON.stringify(old) === JSON.stringify(next);
  const current = async (name: string): Promise<Result<T, KeyFailure>> => {
    const kept = sources.get(name)?.kept;
    if (kept === undefined) return err("source_unknown");
    const value = await kept.current();
    return value === undefined ? err("source_unavailable") : ok(value);
  };
  const lookAgain = async (name: string): Promise<void> => sources.get(name)?.kept.lookAgain();
  return {
    current,
    lookAgain,
    async key(name, header) {
      const copy = await current(name);
      if (!copy.ok) return copy;
      const known = selectKey(keys(copy.value), header, rsaAlgorithms);
      if (known.ok) return known;
      if (known.error.kind !== "key_unknown") return err("key_unknown");
      // RFC8725-3.10-v1: a stranger's `kid` earns one early look for all who ask, and no more than that.
      await lookAgain(name);
      const newer = await current(name);
      if (!newer.ok) return newer;
      const found = selectKey(keys(newer.value), header, rsaAlgorithms);
      return found.ok ? found : err("key_unknown");
    },
    configure(wanted) {
      const next = new Map<string, { where: string; kept: Kept<T> }>();
      for (const [name, where] of wanted) {
        const text = JSON.stringify(where);
        const old = sources.get(name);
        const kept =
          old?.where === text
            ? old.kept
            : keepDocument({
                load: () => load(where),
                accepts,
                same,
                clock,
                onChange: (change) => onChange(name, change),
              });
        next.set(name, { where: text, kept });
        // Whoever has the configuration read again has his files read again too.
        if (kept === old?.kept && "file" in where) void kept.refresh();
      }
      // SFD-6.3-1: when a relationship ends, its keys are gone at once.
      for (const [name, { kept }] of sources) if (next.get(name)?.kept !== kept) kept.stop();
      sources = next;
    },
    stop() {
      for (const { kept } of sources.values()) kept.stop();
    },
  };
}

const fetchSet = (where: RemoteDocument) => fetchDocument(where, KEY_SET_BYTES_MAX);

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file).catch(() => undefined);
  if (bytes === undefined) throw new FetchFailed("the file cannot be read");
  if (bytes.length > KEY_SET_BYTES_MAX) throw new FetchFailed("the file is too large");
  const text = decodeUtf8(bytes);
  if (!text.ok) throw new FetchFailed("the file is not UTF-8");
  return text.value;
}

/** How long an answer is fresh by its own word, within our bounds. */
export function freshSeconds(cacheControl: string): number {
  if (/(?:^|[\s,])no-(?:store|cache)(?:$|[\s,])/i.test(cacheControl)) return FETCHED_SECONDS_MIN;
  const maxAge = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i.exec(cacheControl)?.[1];
  const seconds = maxAge === undefined ? FETCHED_SECONDS : Number(maxAge);
  return Math.min(Math.max(seconds, FETCHED_SECONDS_MIN), FETCHED_SECONDS_MAX);
}
