/** `mandate init`: what it asks, what it writes, and that it writes all or nothing. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { openTerminal } from "../../src/cli/init/prompt.ts";
import { INIT } from "../../src/cli/init/usage.ts";
import { init } from "../../src/cli/init.ts";
import { readGiven } from "../../src/cli/options.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { TestProvider } from "../support/provider.ts";
import { startProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";

let parent: string;
let provider: TestProvider;
let reach: string[];
let count = 0;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate init "));
  provider = await startProvider();
  writeFileSync(join(parent, "ca.pem"), provider.ca);
  writeFileSync(join(parent, "secret"), "from the provider");
  reach = [
    "--provider-ca",
    join(parent, "ca.pem"),
    "--provider-network",
    "127.0.0.1/32",
    "--provider-network",
    "::1/128",
  ];
});
after(() => stop(provider, () => rmSync(parent, { recursive: true, force: true })));

type Run = { code: number; out: string; err: string; folder: string; asked: string[] };

/** With `typed`, a person answers by it. */
async function run(words: readonly string[], typed?: readonly string[]): Promise<Run> {
  const folder = join(parent, `made-${++count}`);
  const given = readGiven(INIT, [folder, ...words]);
  assert.ok(given.ok, JSON.stringify(given));
  const done: Run = { code: -1, out: "", err: "", folder, asked: [] };
  const answers = [...(typed ?? [])];
  const ask = async (question: string): Promise<string> => {
    done.asked.push(question);
    return answers.shift() ?? assert.fail(`no answer to ${question}`);
  };
  const terminal = {
    print(line: string) {
      done.out += `${line}\n`;
    },
    printError(line: string) {
      done.err += `${line}\n`;
    },
  };
  done.code = await init(given.value, terminal, typed && ask);
  return done;
}

const ISSUER = ["--issuer", "https://as.example"];

const pathsOf = (warnings: readonly string[]): readonly string[] =>
  warnings.map((one) => one.slice(0, one.indexOf(":")));

/** Whether the server would start with it, once there is a certificate. */
async function load(folder: string) {
  const authority = await makeAuthority("any");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["as.example"]);
  writeFileSync(join(folder, "tls/key.pem"), keyPem);
  writeFileSync(join(folder, "tls/cert.pem"), certPem);
  const config = loadConfig(join(folder, "config.json"));
  assert.ok(config.ok, JSON.stringify(config));
  return config.value;
}

test("with the issuer alone, it writes a configuration that loads, for this user only", async () => {
  const { code, err, out, folder } = await run(ISSUER);
  assert.deepEqual([code, err], [0, ""]);
  const { settings, fixed, warnings } = await load(folder);
  assert.deepEqual(pathsOf(warnings), ["assertionAudience"]);
  assert.deepEqual([fixed.profile, fixed.listen.host, fixed.listen.port], ["production", "0.0.0.0", 443]);
  assert.deepEqual(fixed.store, { sqlite: join(folder, "data/mandate.sqlite"), startSeconds: 60 });
  assert.ok(fixed.audit.witness !== undefined, "a witness shows later that a store was restored");
  assert.ok(settings.clients.has("administrator"));
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const status = statSync(join(folder, name));
    const mode = name.startsWith("tls/") ? 0o600 : status.mode & 0o777;
    assert.equal(mode, status.isDirectory() ? 0o700 : 0o600, name);
  }
  const { $schema } = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  const schema = JSON.parse(readFileSync(join(folder, $schema), "utf8"));
  assert.equal(schema.title, "Configuration of Mandate", "its descriptions explain each member");
  assert.match(out, new RegExp(`check --config '${folder}/config.json'`));
  assert.match(out, /--permission .*--allow-fs-write='?.*\/data\/\*/);
});

test("the start that it prints may read the files outside of the folder that the configuration names", async () => {
  const [url, bundle] = [join(parent, "database-url"), join(parent, "bundle.json")];
  writeFileSync(url, "postgres://mandate@127.0.0.1/mandate");
  writeFileSync(bundle, JSON.stringify({ keys: [] }));
  const domain = ["--trust-domain", "td.example", "--bundle", bundle];
  const { code, out, err } = await run([...ISSUER, "--store", url, ...domain]);
  assert.equal(code, 0, err);
  const start = /^ *3\. (.*)$/m.exec(out)?.[1] ?? "";
  for (const file of [url, bundle]) assert.ok(start.includes(`'--allow-fs-read=${file}'`), start);
});

test("each installation has a key-encryption key and secrets of its own", async () => {
  const read = async (name: string) => readFileSync(join((await run(ISSUER)).folder, name), "utf8");
  for (const name of ["keys/encryption-key", "clients/administrator"]) {
    assert.equal(Buffer.from(await read(name), "base64url").length, 32);
    assert.notEqual(await read(name), await read(name));
  }
});

test("a provider is discovered, and users sign in there with the method and algorithm that it lists", async () => {
  const secret = ["--client-id", "mandate", "--client-secret", join(parent, "secret")];
  const { code, err, out, folder } = await run([
    ...ISSUER,
    "--provider",
    provider.issuer,
    ...reach,
    ...secret,
  ]);
  assert.equal(code, 0, err);
  const { settings } = await load(folder);
  const found = settings.signIn?.providers.get("company");
  assert.deepEqual(found?.auth, { method: "client_secret_basic", secret: "from the provider" });
  assert.equal(found?.idTokenAlg, "ES256");
  assert.match(out, /register the redirect URI https:\/\/as\.example\/callback\/company /);
});

test("an administrator and an agent of a trust domain are workloads, and get no secret", async () => {
  const bundle = join(parent, "bundle.json");
  writeFileSync(bundle, '{"keys":[]}');
  const { code, err, folder } = await run([
    ...[
      ...ISSUER,
      "--trust-domain",
      "td.example",
      "--bundle",
      bundle,
      "--provider",
      provider.issuer,
      ...reach,
    ],
    ...["--administrator", "spiffe://td.example/ops", "--agent", "spiffe://td.example/agents/planner"],
    ...["--agent-client-id", "app", "--api", "https://api.example", "--scope", "a b"],
  ]);
  assert.deepEqual([code, err], [0, ""]);
  const { settings, warnings } = await load(folder);
  assert.deepEqual([pathsOf(warnings), settings.clients.size], [["assertionAudience"], 0]);
  assert.ok(!existsSync(join(folder, "clients")));
  assert.deepEqual([...settings.policy.rules.keys()].sort(), ["administrator", "agent-for-users"]);
});

test("on a terminal it asks for what the options leave open, explains it, and asks again after a wrong answer", async () => {
  const typed = ["as.example", "https://as.example", "", "", "", "", "../x", "root"];
  const { code, folder, asked } = await run([], typed);
  assert.equal(code, 0);
  assert.match(asked[0] ?? "", /It is the `iss` of every token.*\nURL of this server: $/s);
  assert.match(asked[1] ?? "", /^This is not an https URL/);
  assert.match(asked.at(-1) ?? "", /^This is neither a SPIFFE ID nor a name/);
  assert.ok((await load(folder)).settings.clients.has("root"));
});

test("a person who ends the input instead of answering is told that nothing was written", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()].map((one) =>
    Object.assign(one, { isTTY: true }),
  );
  const terminal = openTerminal(input, output) ?? assert.fail();
  const folder = join(parent, "stopped");
  const given = readGiven(INIT, [folder]);
  assert.ok(given.ok);
  const told: string[] = [];
  const lines = { print: assert.fail, printError: (line: string) => void told.push(line) };
  const ending = init(given.value, lines, terminal.prompt);
  input?.end();
  assert.equal(await ending, 1);
  assert.match(told.join(), /^Stopped, and nothing was written\.$/);
  assert.ok(!existsSync(folder));
  assert.equal(openTerminal(new PassThrough(), output), undefined);
});

const refused: readonly (readonly [what: string, words: () => string[], code: number, err: RegExp])[] = [
  ["no issuer", () => [], 2, /^--issuer is missing$/],
  [
    "an issuer with a slash",
    () => ["--issuer", "https://as.example/"],
    2,
    /^--issuer ends with a slash: leave it out$/,
  ],
  [
    "a bundle without a trust domain",
    () => [...ISSUER, "--bundle", "b"],
    2,
    /^--bundle requires --trust-domain$/,
  ],
  [
    "an agent without a provider",
    () => [...ISSUER, "--agent", "planner"],
    2,
    /^--agent requires --provider$/,
  ],
  [
    "a name that leads to another folder",
    () => [...ISSUER, "--administrator", "../x"],
    2,
    /^--administrator is neither a SPIFFE ID nor a name/,
  ],
  [
    "a trust domain that is none",
    () => [...ISSUER, "--trust-domain", "A b", "--bundle", "https://td.example/bundle"],
    2,
    /^trustDomains\.A b: is not the name of a trust domain$/,
  ],
  [
    "a provider of another name",
    () => [...ISSUER, "--provider", provider.issuer.replace("localhost", "127.0.0.1"), ...reach],
    1,
    /\(metadata_issuer_differs\)$/,
  ],
  [
    "a provider that does not answer",
    () => [...ISSUER, "--provider", "https://localhost:1", ...reach],
    3,
    /cannot be fetched \(.*\): correct --provider, --provider-ca or --provider-network$/,
  ],
  [
    "a provider whose authority is unknown",
    () => [...ISSUER, "--provider", provider.issuer, ...reach.slice(2)],
    3,
    /cannot be fetched/,
  ],
  [
    "a provider that takes no key",
    () => [...ISSUER, "--provider", provider.issuer, ...reach, "--client-id", "mandate"],
    1,
    /does not list private_key_jwt: give its secret with --client-secret FILE$/,
  ],
];
for (const [what, words, code, text] of refused) {
  test(`${what} is refused with one line, and nothing is left`, async () => {
    const done = await run(words());
    assert.equal(done.code, code, done.err);
    assert.match(done.err.trimEnd(), text);
    assert.ok(!existsSync(done.folder));
  });
}

test("a folder with a file in it is left as it is", async () => {
  const folder = join(parent, `made-${count + 1}`);
  mkdirSync(folder);
  writeFileSync(join(folder, "config.json"), "mine");
  const { code, err } = await run(ISSUER);
  assert.equal(code, 1);
  assert.match(err, /is not empty, and nothing in it is overwritten/);
  assert.deepEqual(readdirSync(folder), ["config.json"]);
});
