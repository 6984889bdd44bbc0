/** Settings by a spelling of an earlier release: read for one more release, with a warning. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig, loadSettings } from "../../src/config/config.ts";

const IDP = "https://company.example";
let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
});
after(() => rmSync(parent, { recursive: true, force: true }));

function write(provider: object): string {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const entry = { keys: { url: `${IDP}/jwks` }, acceptAs: [], subjects: { prefix: "c:" } };
  const rest = { policies: [], targets: [], clients: {}, trustedIssuers: { [IDP]: entry } };
  const providers = { company: { issuer: IDP, clientId: "us", ...provider } };
  const file = join(parent, "data", "patched.json");
  writeFileSync(file, JSON.stringify({ ...base, ...rest, signIn: { providers } }));
  return file;
}

test("NAME-D-1 the title of a client is read as one of an agent, with a warning, and is refused beside one", () => {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const clients = { desk: { method: "client_secret_basic", secrets: ["s".repeat(40)], title: "Desk" } };
  const file = join(parent, "data", "patched.json");
  const load = (agents: object) => {
    writeFileSync(file, JSON.stringify({ ...base, policies: [], targets: [], clients, agents }));
    return loadConfig(file);
  };
  const loaded = load({});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.deepEqual(loaded.value.settings.agents.named.get("desk"), { title: "Desk" });
  const warning = `clients.desk.title: is agents.desk.title now: move it, because ${REFUSED}`;
  assert.ok(loaded.value.warnings.includes(warning), JSON.stringify(loaded.value.warnings));
  const both = load({ desk: { title: "Other" } });
  assert.ok(!both.ok);
  assert.deepEqual(both.error, [
    'clients.desk.title: is not a setting of a client with "method": "client_secret_basic"',
  ]);
});

const AT = "signIn.providers.company";
const URL_THERE = { tokenEndpoint: `${IDP}/token` };
const REFUSED = "the next release refuses the older spelling";
const rows: readonly (readonly [older: object, newer: object, warning: string])[] = [
  [
    { requiredAcr: ["strong"] },
    { acr: ["strong"] },
    `${AT}.requiredAcr: is called acr now: rename it, because ${REFUSED}`,
  ],
  [
    { maxAgeSeconds: 600 },
    { signInSecondsMax: 600 },
    `${AT}.maxAgeSeconds: is called signInSecondsMax now: rename it, because ${REFUSED}`,
  ],
  [
    { assertionAudience: "token_endpoint", ...URL_THERE },
    { assertionAudience: "token-endpoint", ...URL_THERE },
    `${AT}.assertionAudience: "token_endpoint" is spelled "token-endpoint" now: change it, because ${REFUSED}`,
  ],
];
for (const [older, newer, warning] of rows) {
  test(`${JSON.stringify(older)} is read like ${JSON.stringify(newer)}, with a warning`, () => {
    const [before, now] = [older, newer].map((provider) => {
      const loaded = loadConfig(write(provider));
      assert.ok(loaded.ok, JSON.stringify(loaded));
      return loaded.value;
    });
    assert.ok(before && now);
    assert.deepEqual(before.settings.signIn, now.settings.signIn);
    assert.deepEqual(
      [before, now].map(({ warnings }) => warnings.filter((one) => one.startsWith(`${AT}.`))),
      [[warning], []],
    );
    const again = before.reread();
    assert.ok(again.ok && again.value.warnings.includes(warning), "where a file that it names has changed");
    const examined = loadSettings(write(older));
    assert.ok(examined.ok && examined.value.warnings.includes(warning), "without the files that it names");
  });
}

test("an older spelling beside the newer one is refused", () => {
  const loaded = loadConfig(write({ requiredAcr: ["a"], acr: ["b"] }));
  assert.deepEqual(loaded, { ok: false, error: [`${AT}.requiredAcr: is not a known setting`] });
});

test("a wrong value under an older spelling is refused, with what the setting is called now", () => {
  const loaded = loadConfig(write({ maxAgeSeconds: 0 }));
  const problems = [`${AT}.signInSecondsMax: is less than 1`, rows[1]?.[2]];
  assert.deepEqual(loaded, { ok: false, error: problems });
});
