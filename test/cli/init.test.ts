/** `mandate init`: what it asks, what it writes, and that it writes all or nothing. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
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
import { runCommandLine } from "../../scripts/command-line.ts";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { type Answer, send } from "../../scripts/http-client.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { openTerminal } from "../../src/cli/init/prompt.ts";
import { INIT } from "../../src/cli/init/usage.ts";
import { init } from "../../src/cli/init.ts";
import { readGiven } from "../../src/cli/options.ts";
import { loadConfig } from "../../src/config/config.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";

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

/** What the operator does next; returns the authority of the certificate, in PEM. */
async function addCertificate(folder: string, host: string): Promise<string> {
  const authority = await makeAuthority("any");
  const { keyPem, certPem } = await issueServerCertificate(authority, [host]);
  writeFileSync(join(folder, "tls/key.pem"), keyPem);
  writeFileSync(join(folder, "tls/cert.pem"), certPem);
  return authority.certPem;
}

/** Whether the server would start with it, once there is a certificate. */
async function load(folder: string) {
  await addCertificate(folder, "as.example");
  const config = loadConfig(join(folder, "config.json"));
  assert.ok(config.ok, JSON.stringify(config));
  return config.value;
}

test("with the issuer alone, it writes a configuration that loads, for this user only", async () => {
  const { code, err, out, folder } = await run(ISSUER);
  assert.deepEqual([code, err], [0, ""]);
  const { settings, fixed, warnings } = await load(folder);
  assert.deepEqual(pathsOf(warnings), []);
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

test("the authority in the URL of the database is copied with it, and the copy names the copy", async () => {
  mkdirSync(join(parent, "database"));
  const url = join(parent, "database/url");
  writeFileSync(url, "postgres://m:p%26s@db.example/m?sslmode=verify-full&sslrootcert=my%20ca.pem&a=b\n");
  const { certPem } = await makeAuthority("Authority of the database");
  writeFileSync(join(parent, "database/my ca.pem"), certPem);
  const { code, out, err, folder } = await run([...ISSUER, "--store", url]);
  assert.deepEqual([code, err], [0, ""]);
  rmSync(join(parent, "database"), { recursive: true });
  const { store } = (await load(folder)).fixed;
  assert.ok("postgres" in store);
  assert.deepEqual(store.tls, { mode: "verified", ca: certPem });
  assert.equal(store.postgres, "postgres://m:p%26s@db.example/m?a=b");
  assert.ok(!out.includes(url), "the start needs no flag for the file that was copied");
});

test("STORE-D-23 several instances have a folder, a name and a port of health each, and share all else", async () => {
  const url = join(parent, "url-of-several");
  writeFileSync(url, "postgres://mandate@127.0.0.1/mandate");
  const data = join(parent, "data-of-several");
  const words = [...ISSUER, "--store", url, "--instances", "2", "--data", data];
  const { code, err, out, folder } = await run(words);
  assert.deepEqual([code, err], [0, ""]);
  await addCertificate(folder, "as.example");
  const loaded = ["one", "two"].map((name) => {
    const config = loadConfig(join(folder, name, "config.json"));
    assert.ok(config.ok, JSON.stringify(config));
    return config.value.fixed;
  });
  const own = loaded.map(({ audit: { instance, witness }, operations }) => [
    instance,
    operations?.port,
    witness,
  ]);
  assert.deepEqual(own, [
    ["one", 1443, { file: join(data, "one/witness/checkpoints.jsonl") }],
    ["two", 1444, { file: join(data, "two/witness/checkpoints.jsonl") }],
  ]);
  assert.ok(loaded.every(({ listen }) => listen.reusePort && listen.port === 443));
  const [one, two] = ["one", "two"].map((name) => {
    const text = readFileSync(join(folder, name, "config.json"), "utf8");
    const { operations: _, audit: __, ...shared } = JSON.parse(text);
    assert.ok(existsSync(join(folder, name, shared.$schema)), "an editor finds the schema");
    return shared;
  });
  assert.deepEqual(one, two);
  assert.equal(readFileSync(join(folder, "systemd/mandate.target"), "utf8").match(/mandate@\w+/g)?.length, 2);
  assert.match(out, /systemctl enable --now mandate\.target$/m);
});

test("an authority of the database that is not there is told, and nothing is left", async () => {
  const url = join(parent, "url-of-nothing");
  writeFileSync(url, "postgres://m@db.example/m?sslrootcert=nothing.pem");
  const folder = join(parent, "of-nothing");
  const { code, err } = await runCommandLine(["init", folder, ...ISSUER, "--store", url]);
  assert.equal(code, 2);
  assert.match(err, /nothing\.pem": there is no such file or folder: correct its name, or make it\n$/);
  assert.ok(!existsSync(folder));
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
  assert.deepEqual([code, err], [0, ""], "an app is there for which users sign in");
  const { settings } = await load(folder);
  const found = settings.signIn?.providers.get("company");
  assert.deepEqual(found?.auth, { method: "client_secret_basic", secret: "from the provider" });
  assert.equal(found?.idTokenAlg, "ES256");
  assert.match(out, /register the redirect URI https:\/\/as\.example\/callback\/company /);
});

test("with --client-id, the start and the address that it prints lead to a first consent page", async (t) => {
  const [port = 0] = await freePorts(1);
  const issuer = `https://localhost:${port}`;
  const words = ["--issuer", issuer, "--provider", provider.issuer, ...reach, "--client-id", "mandate"];
  provider.lies.metadata = { token_endpoint_auth_methods_supported: ["private_key_jwt"] };
  t.after(() => delete provider.lies.metadata);
  const { code, err, out, folder } = await run([
    ...words,
    "--api",
    "https://trips.example",
    "--scope",
    "a b",
  ]);
  assert.deepEqual([code, err], [0, ""]);
  const ca = await addCertificate(folder, "localhost");

  const child = spawn("sh", ["-c", `exec ${/^ *3\. (.*)$/m.exec(out)?.[1]}`], { stdio: "ignore" });
  const exited = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const cookies = new Map<string, string>();
  const open = async (url: string): Promise<Answer> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await send(url, { ca, headers: cookie === "" ? {} : { cookie } });
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(answer.headers["set-cookie"] ?? "") ?? [];
    if (name !== undefined && value !== undefined) cookies.set(name, value);
    const to = answer.headers.location;
    if (to === undefined) return answer;
    return open(to.startsWith(issuer) ? to : provider.signIn(to));
  };
  const first = /^ *Or open in a browser: (.*)$/m.exec(out)?.[1] ?? assert.fail(out);
  const answers = (): Promise<boolean> =>
    send(`${issuer}/jwks`, { ca }).then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(answers, "the server of the printed start answers");
  const page = await open(first);
  assert.equal(page.status, 200, page.text);
  for (const text of ["First app", "https://trips.example", "use &#34;a&#34; of", "use &#34;b&#34; of"]) {
    assert.ok(page.text.includes(text), `${text}: ${page.text}`);
  }
  assert.match(page.text, /<button[^>]* name="decision" value="allow"/);
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
  assert.deepEqual([pathsOf(warnings), settings.clients.size], [[], 0]);
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
    "several instances on SQLite",
    () => [...ISSUER, "--instances", "2"],
    2,
    /^--instances requires --store with a PostgreSQL database, because SQLite serves one process$/,
  ],
  [
    "more instances than there are names for",
    () => [...ISSUER, "--instances", "9"],
    2,
    /^--instances is more than 8$/,
  ],
  [
    "half an instance",
    () => [...ISSUER, "--instances", "1.5"],
    2,
    /^--instances is not a whole number from 1 to 8$/,
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
    "an administrator with the name of the app",
    () => [...ISSUER, "--administrator", "first-app"],
    2,
    /^first-app is the app with which a first page is opened: give another name$/,
  ],
  [
    "an API for which there is neither agent nor sign-in",
    () => [...ISSUER, "--api", "https://api.example"],
    2,
    /^--api requires --agent or --client-id$/,
  ],
  [
    "a provider of another name",
    () => [...ISSUER, "--provider", provider.issuer.replace("localhost", "127.0.0.1"), ...reach],
    1,
    /\(metadata_issuer_differs: the document names "https:\/\/localhost[^"]*", not "[^"]*"\)$/,
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
