/** `mandate trust`: what the servers keep of the keys of others, and what is there now. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HostRun } from "../../scripts/command-line.ts";
import { bundle } from "../../scripts/dev-keys.ts";
import { fetchDocument } from "../../src/adapters/remote/fetch.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { RemoteDocument, Settings } from "../../src/settings/settings.ts";
import { runCommand } from "../support/host.ts";
import { stop } from "../support/stop.ts";
import { IDP, makeSurroundings, TRUST_DOMAIN } from "../support/world.ts";

type Surroundings = Awaited<ReturnType<typeof makeSurroundings>>;
let surroundings: Surroundings;
let settings: Settings;
let store: Store;
before(async () => {
  surroundings = await makeSurroundings({});
  const config = loadConfig(surroundings.configFile);
  assert.ok(config.ok);
  ({ settings } = config.value);
  store = await openStore({ sqlite: ":memory:" });
});
after(() => stop(store, () => surroundings.remove()));

function issuerKeys(): RemoteDocument {
  const keys = settings.trustedIssuers.get(IDP)?.keys;
  return keys !== undefined && "url" in keys ? keys : assert.fail();
}

const trust = (...words: string[]): Promise<HostRun> => runCommand(["trust", ...words], { settings, store });
const shown = async (...words: string[]) =>
  (await trust(...words, "--json")).out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

test("a file is read now, and what was never fetched has no keys", async () => {
  const [domain, issuer] = await shown("list");
  assert.deepEqual(
    [domain.kind, domain.name, domain.keys, domain.x509_authorities],
    ["trust_bundle", TRUST_DOMAIN, ["td-1"], 1],
  );
  assert.deepEqual([issuer.kind, issuer.name, issuer.keys], ["issuer_keys", IDP, undefined]);
  assert.match((await trust("list")).out, /^issuer_keys https:\/\/idp\.example place=\S+ keys=none$/m);
});

test("fetch compares what is there now with the copy that is kept", async () => {
  const first = await trust("fetch", IDP);
  assert.equal(first.code, 0, first.err);
  assert.match(first.out, /same_as_kept=false/);
  assert.match(first.out, /SIGHUP makes them fetch this one/);
  const [now] = await shown("fetch", IDP);
  assert.ok(now.keys.length > 0);
  const served = await fetchDocument(issuerKeys(), 100_000);
  const row = {
    kind: "issuer_keys",
    name: IDP,
    location: "any",
    body: served.text,
    loadedAtSeconds: 1,
  } as const;
  await store.polled.save(row);
  const second = await trust("fetch", IDP);
  assert.match(second.out, /same_as_kept=true/);
  assert.doesNotMatch(second.out, /SIGHUP/);
});

test("the copy that is kept is listed with its age, and a bundle with the time when it is due again", async () => {
  const remote = { url: "https://td.example/bundle", privateNetworks: [] };
  const domain = settings.trustDomains.get(TRUST_DOMAIN) ?? assert.fail();
  const changed = { ...settings, trustDomains: new Map([[TRUST_DOMAIN, { ...domain, bundle: remote }]]) };
  const loadedAtSeconds = Math.floor(Date.now() / 1000) - 100;
  const body = JSON.stringify({
    ...bundle(surroundings.trustDomain),
    spiffe_refresh_hint: 600,
    spiffe_sequence: 4,
  });
  await store.polled.save({
    kind: "trust_bundle",
    name: TRUST_DOMAIN,
    location: "any",
    body,
    sequence: 4,
    loadedAtSeconds,
  });
  const { out } = await runCommand(["trust", "list", "--json"], { settings: changed, store });
  const kept = JSON.parse(out.split("\n")[0] ?? "");
  assert.deepEqual(
    [kept.sequence, kept.refresh_at],
    [4, new Date(1000 * (loadedAtSeconds + 600)).toISOString()],
  );
  assert.ok(kept.age_seconds >= 100 && kept.age_seconds < 200);
});

test("an unknown name is refused, and one that cannot be fetched is told", async () => {
  assert.deepEqual(
    [(await trust("fetch", "nowhere.example")).code, (await trust("fetch", "nowhere.example")).err],
    [1, "nowhere.example is neither a trust domain, a trusted issuer nor a client with jwksUri\n"],
  );
  const issuer = settings.trustedIssuers.get(IDP) ?? assert.fail();
  const keys = { url: "https://127.0.0.1:1/jwks", privateNetworks: ["127.0.0.1/32"] };
  const changed = { ...settings, trustedIssuers: new Map([[IDP, { ...issuer, keys }]]) };
  const { code, err } = await runCommand(["trust", "fetch", IDP], { settings: changed, store });
  assert.equal(code, 3);
  assert.match(
    err,
    /^issuer_keys https:\/\/idp\.example cannot be fetched from https:\/\/127\.0\.0\.1:1\/jwks: /,
  );
});
