/**
 * Public keys of others by name, each in its own polled document, whose members are replaced together at a reload.
 * SPIFFE Federation: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Federation.md, state of 1 July 2026
 * Covers 6 polling and the end of a relationship.
 */
import { readFile } from "node:fs/promises";
import { KEY_SET_BYTES_MAX } from "../../limits/fetching.ts";
import type { Clock, KeyFailure, KeySource, KeyWait, SourceState, Timers } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../../result.ts";
import type { IssuerKeys, SpiffeEndpoint } from "../../settings/settings.ts";
import type { JwsHeader } from "../../spec/rfc7515.ts";
import { type Jwk, selectKey } from "../../spec/rfc7517.ts";
import { decodeUtf8 } from "../../spec/rfc8259.ts";
import { hash } from "../crypto/hash.ts";
import type { PolledKind, PolledRow, PolledRows } from "../store/store.ts";
import { FetchFailed, maySucceedLater } from "./fetch-failed.ts";
import { type FetchResult, timeFetch } from "./fetch-timer.ts";
import {
  type Change,
  type Loaded,
  type Memory,
  type PolledDocument,
  pollDocument,
  wholeSeconds,
} from "./polled-document.ts";

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

export type File = { file: string };
type Remote = Exclude<IssuerKeys, File> | SpiffeEndpoint;

/** A key source whose members are replaced together when the configuration is reloaded. */
export type KeySources<Place> = KeySource & {
  /** Sources that stay keep their copies, and are fetched anew in the background at a reload by SIGHUP. */
  configure(sources: ReadonlyMap<string, Place>): void;
  states(): ReadonlyMap<string, SourceState>;
  stop(): void;
};

/** One look at a document, as the server would load it; an error says why it cannot be used. */
export async function looked<T>(loading: Promise<Loaded<T>>): Promise<Result<T, string>> {
  try {
    return ok((await loading).value);
  } catch (fault) {
    if (!(fault instanceof FetchFailed || fault instanceof SourceFailed)) throw fault;
    return err(fault.message);
  }
}

type Parse<T> = (text: string) => Result<T, { kind: string; says?: string }>;

export function parsed<T>(parse: Parse<T>, text: string): T {
  const value = parse(text);
  if (!value.ok) {
    const { kind, says } = value.error;
    throw new SourceFailed(says === undefined ? kind : `${kind}: ${says}`);
  }
  return value.value;
}

/** A document was received, but it is not valid. */
export class SourceFailed extends Error {
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

export function keySources<T, Place extends File | Remote>(source: SourceKind<T, Place>): Sources<T, Place> {
  const { kind, keys, rsaAlgorithms, rows } = source;
  let sources = new Map<string, { where: string; polled: PolledDocument<T>; last: LastLoad }>();
  const current = (name: string): Awaitable<Result<T, KeyFailure>> => {
    const found = sources.get(name);
    if (found === undefined) return err("source_unknown");
    return whenReady(found.polled.current(), (value) => {
      if (value !== undefined) return ok(value);
      // MCPC-D-24: what is still fetched, or could not be fetched now, may be there in a moment.
      const { fault } = found.last;
      const mayPass = fault === undefined || (fault instanceof FetchFailed && maySucceedLater(fault));
      return err(mayPass ? "source_silent" : "source_unavailable");
    });
  };
  const later = async function* (name: string, until?: KeyWait) {
    for await (const _ of sources.get(name)?.polled.looks(until) ?? []) yield await current(name);
  };
  const copies = async function* (name: string, until?: KeyWait) {
    yield await current(name);
    yield* later(name, until);
  };
  return {
    copies,
    key(name, header, until) {
      const keyIn = (copy: Result<T, KeyFailure>) =>
        copy.ok ? choose(keys(copy.value), header, rsaAlgorithms) : copy;
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
      const next: typeof sources = new Map();
      for (const [name, where] of wanted) {
        const text = JSON.stringify(where);
        const old = sources.get(name);
        if (old?.where === text) {
          next.set(name, old);
          void old.polled.refresh();
          continue;
        }
        const last = {};
        next.set(name, { where: text, polled: pollSource(source, name, where, last), last });
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

/** Undefined: a later copy may have it. */
function choose(
  keys: readonly Jwk[],
  header: JwsHeader,
  rsaAlgorithms: readonly string[],
): Result<Jwk, KeyFailure> | undefined {
  const found = selectKey(keys, header, rsaAlgorithms);
  if (found.ok) return found;
  // JWKS-D-2: which of the two it is, its owner has to mend.
  if (found.error.kind === "key_ambiguous") return err("key_ambiguous");
  return found.error.kind === "key_unknown" ? undefined : err("key_unknown");
}

/** The fault of the last load, until one succeeds. */
type LastLoad = { fault?: unknown };

function pollSource<T, Place extends File | Remote>(
  source: SourceKind<T, Place>,
  name: string,
  where: Place,
  last: LastLoad,
): PolledDocument<T> {
  const { accepts, size, clock, timers, lastGoodSeconds } = source;
  const load = async (latest: T | undefined): Promise<Loaded<T>> => {
    try {
      const loaded = await source.load(where, latest);
      last.fault = undefined;
      return loaded;
    } catch (fault) {
      last.fault = fault;
      throw fault;
    }
  };
  const same = (old: T, next: T): boolean => JSON.stringify(old) === JSON.stringify(next);
  const onChange = (change: Change): void => source.onChange(name, change);
  const document = { load, accepts, same, size, clock, timers, lastGoodSeconds, onChange };
  // A file is on the disk already and needs no stored copy.
  if ("file" in where) return pollDocument(document);
  const fetched = observed(load, clock, (result) => source.onFetch?.(name, result));
  return pollDocument({ ...document, load: fetched, memory: memoryOf(source, name, where) });
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
      const row = { kind, name, location, body: text, loadedAtSeconds: wholeSeconds(loadedAtMs) };
      await rows.save(defined<PolledRow>({ ...row, sequence: sequence(value) }));
    },
    redate: (loadedAtMs, nextMs) => rows.redate(kind, name, wholeSeconds(loadedAtMs), wholeSeconds(nextMs)),
  };
}

/** Everything that identifies the source: the URL, and how the server at it is authenticated. */
function locationOf(remote: Remote): string {
  const { privateNetworks: _, authorization: __, ...where } = { authorization: undefined, ...remote };
  return `${"discover" in where ? where.discover : where.url} ${hash.sha256(JSON.stringify(where))}`;
}

export async function readFileText(file: string): Promise<string> {
  const bytes = await readFile(file).catch(() => undefined);
  if (bytes === undefined) throw new SourceFailed("the file cannot be read");
  if (bytes.length > KEY_SET_BYTES_MAX) throw new SourceFailed("the file is too large");
  const text = decodeUtf8(bytes);
  if (!text.ok) throw new SourceFailed("the file is not UTF-8");
  return text.value;
}
