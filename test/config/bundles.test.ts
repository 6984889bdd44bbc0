/** The configuration of a trust domain's bundle and of the operations listener. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { bundle } from "../../scripts/dev-keys.ts";
import { makeTrustDomain } from "../../scripts/dev-pki.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { bundleFiles } from "../../src/config/bundles.ts";
import { loadConfig } from "../../src/config/config.ts";
import { makeBlindReader } from "../../src/config/reader.ts";
import { err } from "../../src/result.ts";
import { parseBundle } from "../../src/spec/spiffe/bundle.ts";

const NAME = "td.example";
const PATH = `trustDomains.${NAME}.bundle`;
const URL = "https://bundles.elsewhere.example/td";

let parent: string;
let configFile: string;
let bootstrap: object;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
  bootstrap = bundle(await makeTrustDomain(NAME));
  const save = (name: string, content: object): void =>
    writeFileSync(join(parent, "data", name), JSON.stringify(content));
  save("bootstrap.json", bootstrap);
  save("empty.json", { keys: [] });
  save("broken.json", {});
});

after(() => rmSync(parent, { recursive: true, force: true }));

function load(patch: object) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  writeFileSync(file, JSON.stringify({ ...base, policies: [], targets: [], clients: {}, ...patch }));
  return loadConfig(file);
}

const loadBundle = (from: object) => load({ trustDomains: { [NAME]: { bundle: from } } });

const spiffe = {
  url: URL,
  profile: "https_spiffe",
  endpointSpiffeId: `spiffe://${NAME}/bundles`,
  bootstrap: { file: "bootstrap.json" },
};

test("SFD-5-1, SFD-5.2.2.2-1 https_spiffe has the SPIFFE ID of its endpoint and a bootstrap bundle", () => {
  const config = loadBundle(spiffe);
  const parsed = parseBundle(JSON.stringify(bootstrap));
  assert.ok(config.ok && parsed.ok, JSON.stringify(config));
  assert.deepEqual(config.value.settings.trustDomains.get(NAME)?.bundle, {
    url: URL,
    privateNetworks: [],
    endpointSpiffeId: `spiffe://${NAME}/bundles`,
    bootstrap: parsed.value,
  });
});

test("SFD-5.1-1, SFD-7.2-1 https_web is the default profile, with the system's certificate authorities or configured ones", () => {
  for (const profile of [{}, { profile: "https_web" }]) {
    const config = loadBundle({ url: URL, ...profile });
    assert.ok(config.ok, JSON.stringify(config));
    const { bundle: where } = config.value.settings.trustDomains.get(NAME) ?? {};
    assert.deepEqual(where, { url: URL, privateNetworks: [] });
  }
  const config = loadBundle({ url: URL, ca: { file: "tls/ca.pem" } });
  assert.ok(config.ok, JSON.stringify(config));
  const where = config.value.settings.trustDomains.get(NAME)?.bundle;
  assert.match(where !== undefined && "ca" in where ? String(where.ca) : "", /BEGIN CERTIFICATE/);
});

test("a bundle file is looked into once, of however many trust domains it is, and each of them is told", () => {
  const warnings: string[] = [];
  const looked: string[] = [];
  const peek = (name: string) => {
    looked.push(name);
    return err(`${name} cannot be read`);
  };
  const read = bundleFiles({ ...makeBlindReader(), warnings, peek });
  for (const domain of ["a.example", "b.example"])
    assert.deepEqual(read(domain, "x.json"), { file: "x.json" });
  assert.deepEqual(looked, ["x.json"]);
  assert.deepEqual(
    warnings.map((text) => text.split(":", 2).join(":")),
    ["a", "b"].map((name) => `trustDomains.${name}.example.bundle.file: x.json cannot be read`),
  );
});

const wrong: [name: string, from: object, problem: string][] = [
  [
    "SFD-5.2.2.2-1 https_spiffe without the endpoint's SPIFFE ID is refused",
    { ...spiffe, endpointSpiffeId: undefined },
    `${PATH}.endpointSpiffeId: is missing`,
  ],
  [
    "SFD-5.2.2.2-1 https_spiffe without a bootstrap bundle is refused",
    { ...spiffe, bootstrap: undefined },
    `${PATH}.bootstrap: is missing`,
  ],
  [
    "SFD-5.2.2.2-1 an empty bootstrap bundle is refused",
    { ...spiffe, bootstrap: { file: "empty.json" } },
    `${PATH}.bootstrap.file: is not a bundle with X.509 authorities`,
  ],
  [
    "SFD-5.2.2.2-1 a bootstrap file that is not a bundle is refused",
    { ...spiffe, bootstrap: { file: "broken.json" } },
    `${PATH}.bootstrap.file: is not a bundle with X.509 authorities`,
  ],
  [
    "SFD-5.2.2.2-1 a missing bootstrap file is refused",
    { ...spiffe, bootstrap: { file: "nowhere.json" } },
    `${PATH}.bootstrap.file: nowhere.json cannot be read: there is no such file or folder: correct its name, or make it`,
  ],
  [
    "SFD-5.2.2.4-1 the SPIFFE ID of another trust domain is refused",
    { ...spiffe, endpointSpiffeId: "spiffe://other.example/bundles" },
    `${PATH}.endpointSpiffeId: is not in this trust domain`,
  ],
  [
    "SFD-7.2-1 a web certificate authority for https_spiffe is refused",
    { ...spiffe, ca: { file: "tls/ca.pem" } },
    `${PATH}.ca: is allowed with "profile": "https_web" only`,
  ],
  [
    "SFD-7.2-1 https_spiffe is not inferred from an endpoint's SPIFFE ID",
    { url: URL, endpointSpiffeId: `spiffe://${NAME}/bundles` },
    `${PATH}.endpointSpiffeId: is allowed with "profile": "https_spiffe" only`,
  ],
  [
    "SFD-7.2-1 a bootstrap bundle for https_web is refused",
    { url: URL, profile: "https_web", bootstrap: { file: "bootstrap.json" } },
    `${PATH}.bootstrap: is allowed with "profile": "https_spiffe" only`,
  ],
];
for (const [name, from, problem] of wrong) {
  test(name, () => {
    const config = loadBundle(from);
    assert.deepEqual(config.ok ? [] : config.error, [problem]);
  });
}

test("an unknown member of a bundle is named", () => {
  const config = load({ trustDomains: { "td.example": { bundle: { url: URL, privateNetwork: [] } } } });
  const text = 'trustDomains.td.example.bundle: has members that are no known settings: "privateNetwork"';
  assert.deepEqual(config.ok ? [] : config.error, [text]);
});

test("SFD-5.1-1, PROD-4.4-6 an endpoint without a URL and a trust domain without a name are refused", () => {
  const nowhere = loadBundle({ ...spiffe, url: undefined });
  assert.match(nowhere.ok ? "" : nowhere.error.join(), /^trustDomains\.td\.example\.bundle: is neither/);
  const nameless = load({ trustDomains: { "": { bundle: { url: URL } } } });
  assert.ok(!nameless.ok);
});

test("the operations listener is off by default, and on loopback unless a host is configured", () => {
  const operationsOf = (patch: object) => {
    const config = load(patch);
    assert.ok(config.ok, JSON.stringify(config));
    return config.value.fixed.operations;
  };
  assert.equal(operationsOf({}), undefined);
  assert.deepEqual(operationsOf({ operations: { port: 9090 } }), { host: "127.0.0.1", port: 9090 });
  const open = { operations: { host: "0.0.0.0", port: 9090 } };
  const config = load(open);
  const problem =
    "operations.host: must be a loopback address in the development profile, for example 127.0.0.1";
  assert.deepEqual(config.ok ? [] : config.error, [problem]);
  const production = load({ profile: "production", ...open });
  assert.ok(!(production.ok ? [] : production.error).includes(problem));
});
