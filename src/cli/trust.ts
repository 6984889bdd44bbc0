/** `mandate trust`: the bundles and key sets of others that the configuration trusts, as the servers keep them and as they are now. */
import { clock } from "../adapters/clock.ts";
import { lookAtKeySet } from "../adapters/remote/key-sets.ts";
import { lookAtBundle } from "../adapters/remote/trust-bundles.ts";
import type { PolledKind, PolledRow } from "../adapters/store/store.ts";
import { EXIT } from "../limits/process.ts";
import { defined, ok, type Result } from "../result.ts";
import type { IssuerKeys, Settings, TrustDomain } from "../settings/settings.ts";
import { parseJwkSet } from "../spec/rfc7517.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { type Bundle, parseBundle, refreshSeconds } from "../spec/spiffe/bundle.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";
import { fields, jsonLine, time, word } from "./text.ts";

export function trustCommand(given: CommandArguments): Result<Command, string> {
  const [name] = given.args;
  const json = given.has("json");
  return onStore(given, (admin) => (name === undefined ? listAll(admin, json) : fetchNow(admin, name, json)));
}

/** What a document holds, as a line shows it: the keys by their names, and when it is to be fetched again. */
type Content = { keys: readonly string[]; authorities?: number; sequence?: number; refreshSeconds?: number };

type Trusted = {
  kind: PolledKind;
  name: string;
  /** The file or URL of the document. */
  place: string;
  isFile: boolean;
  look(): Promise<Result<Content, string>>;
  read(body: string): Content | undefined;
};

/** Everything in the configuration that has keys of others. */
function trustedIn({ trustDomains, trustedIssuers, clients }: Settings): readonly Trusted[] {
  const bundles = [...trustDomains.values()].map(bundleOf);
  const issuers = [...trustedIssuers].map(([name, { keys }]) => keySetOf("issuer_keys", name, keys));
  const ofClients = [...clients].flatMap(([name, { auth }]) =>
    "jwksUri" in auth ? [keySetOf("client_keys", name, auth.jwksUri)] : [],
  );
  return [...bundles, ...issuers, ...ofClients];
}

function bundleOf({ name, bundle }: TrustDomain): Trusted {
  const isFile = "file" in bundle;
  return {
    kind: "trust_bundle",
    name,
    place: isFile ? bundle.file : bundle.url,
    isFile,
    async look() {
      const looked = await lookAtBundle(bundle, clock);
      return looked.ok ? ok(contentOf(looked.value)) : looked;
    },
    read(body) {
      const parsed = parseBundle(body);
      return parsed.ok ? contentOf(parsed.value) : undefined;
    },
  };
}

const contentOf = (bundle: Bundle): Content =>
  defined<Content>({
    keys: namesOf(bundle.jwtKeys),
    authorities: bundle.x509Authorities.length,
    sequence: bundle.sequence,
    refreshSeconds: refreshSeconds(bundle),
  });

function keySetOf(kind: PolledKind, name: string, keys: IssuerKeys): Trusted {
  const place = "file" in keys ? keys.file : "url" in keys ? keys.url : `${keys.discover} (by its metadata)`;
  return {
    kind,
    name,
    place,
    isFile: "file" in keys,
    async look() {
      const looked = await lookAtKeySet(keys);
      return looked.ok ? ok({ keys: namesOf(looked.value) }) : looked;
    },
    read(body) {
      const parsed = parseJwkSet(body);
      return parsed.ok ? { keys: namesOf(parsed.value) } : undefined;
    },
  };
}

const namesOf = (keys: readonly { kid?: string | undefined }[]): readonly string[] =>
  keys.map(({ kid }) => kid ?? "(no kid)").toSorted();

/** A file is read now; for a URL the last good copy in the store is shown, with which a server would start. */
async function listAll({ settings, store, print }: Admin, json: boolean): Promise<number> {
  for (const trusted of trustedIn(settings)) {
    const { kind, name, isFile } = trusted;
    const row = isFile ? undefined : await store.polled.find(kind, name);
    const looked = isFile ? await trusted.look() : ok(row && trusted.read(row.body));
    const shown = shownOf(trusted, looked.ok ? looked.value : undefined, row);
    const failure = looked.ok ? undefined : looked.error;
    print(json ? jsonLine(defined<JsonObject>({ ...shown, failure })) : lineOf(shown, failure));
  }
  return EXIT.done;
}

function shownOf({ kind, name, place }: Trusted, content: Content | undefined, row?: PolledRow): JsonObject {
  const { keys, authorities, sequence, refreshSeconds: refresh } = content ?? {};
  const loaded = row?.loadedAtSeconds;
  return defined<JsonObject>({
    kind,
    name,
    place,
    loaded_at: loaded === undefined ? undefined : time(1000 * loaded),
    age_seconds: loaded === undefined ? undefined : clock.nowSeconds() - loaded,
    // Key sets are fetched again when the header of the response says so, which is not kept.
    refresh_at: loaded === undefined || refresh === undefined ? undefined : time(1000 * (loaded + refresh)),
    keys: keys && [...keys],
    x509_authorities: authorities,
    sequence,
  });
}

function lineOf({ kind, name, keys, ...rest }: JsonObject, failure: string | undefined): string {
  const texts = Object.entries(rest).map(([member, value]) => [member, word(String(value))] as const);
  const state =
    keys === undefined ? "none" : `${Array.isArray(keys) ? keys.map(String).map(word).join(",") : ""}`;
  return `${kind} ${word(String(name))} ${fields({ ...Object.fromEntries(texts), keys: state, failure: failure && word(failure) })}`;
}

/**
 * Fetches the documents with this name, and says whether they are what the servers have; a server fetches by itself, or
 * at SIGHUP.
 */
async function fetchNow(
  { settings, store, print, printError }: Admin,
  name: string,
  json: boolean,
): Promise<number> {
  const found = trustedIn(settings).filter((one) => one.name === name);
  if (found.length === 0) {
    printError(`${word(name)} is neither a trust domain, a trusted issuer nor a client with jwksUri`);
    return EXIT.refused;
  }
  let code: number = EXIT.done;
  for (const trusted of found) {
    const looked = await trusted.look();
    if (!looked.ok) {
      printError(
        `${trusted.kind} ${word(name)} cannot be fetched from ${word(trusted.place)}: ${looked.error}`,
      );
      code = EXIT.unavailable;
      continue;
    }
    const row = await store.polled.find(trusted.kind, name);
    const kept = row && trusted.read(row.body);
    const isKept = JSON.stringify(kept) === JSON.stringify(looked.value);
    // No server keeps a copy of a file.
    const same_as_kept = trusted.isFile ? undefined : isKept;
    const shown = defined<JsonObject>({ ...shownOf(trusted, looked.value), same_as_kept });
    print(json ? jsonLine(shown) : lineOf(shown, undefined));
    if (!isKept && !trusted.isFile && !json)
      print("The servers use another copy: SIGHUP makes them fetch this one.");
  }
  return code;
}
