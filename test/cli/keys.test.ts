/** `mandate keys`: on the store of a running service, which goes on without a restart. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { checkKeys, sealedKeys } from "../../src/adapters/crypto/seal.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Admin } from "../../src/cli/command.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { Ports } from "../../src/ports.ts";
import { parseCommand, runCommand } from "../support/host.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { ACCESS_TOKEN, EXCHANGE, ISSUER, type Service, workload } from "../support/world.ts";

const SECRET = "admin-tokens-admin-tokens-12345678";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read"];
const SCHEDULE = { rotateSeconds: 86_400, announceSeconds: 3_600, retireSeconds: 4_000, cacheSeconds: 300 };

let service: Service & { ports: Ports };
let on: Pick<Admin, "settings" | "store" | "custody" | "encryptionKeys">;
let sqlite: string;

before(async () => {
  service = await makeService(
    {
      keys: { encryptionKey: { file: "keys/encryption-key" }, ...SCHEDULE },
      clients: {
        desk: { method: "client_secret_basic", secrets: [SECRET] },
        gate: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [
        { names: ["planner"], owners: [planner], introspectors: ["gate"], scopes },
        { names: ["booking"], owners: [booking], introspectors: ["gate"], scopes },
      ],
      policies: [
        { id: "desk", allow: "client_credentials", clients: ["desk"], targets: ["planner"], scopes },
        {
          id: "admin",
          allow: "client_credentials",
          clients: ["desk"],
          targets: [`${ISSUER}/api`],
          scopes: ["audit:read"],
        },
        {
          id: "planner",
          allow: "delegation",
          actors: [planner],
          subjects: { issuers: [ISSUER] },
          subjectToken: { audiences: ["self"] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
          targets: ["booking"],
          scopes,
        },
      ],
    },
    { inFile: true },
  );
  const config = loadConfig(service.configFile);
  assert.ok(config.ok, JSON.stringify(config));
  const { settings, fixed } = config.value;
  assert.ok("sqlite" in fixed.store);
  sqlite = fixed.store.sqlite;
  const encryptionKeys = [fixed.keys.encryptionKey] as const;
  const store = await openStore(fixed.store);
  on = { settings, store, encryptionKeys, custody: sealedKeys(encryptionKeys) };
});
after(() => stop(on?.store, service));

const keys = (...words: string[]): Promise<HostRun> => runCommand(["keys", ...words], on);

type Shown = { kid: string; state: string; purpose: string; alg: string; next_change_at?: number };

async function listed(): Promise<Shown[]> {
  const { code, out } = await keys("list", "--json");
  assert.equal(code, 0);
  return out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const kidOf = async (state: string, purpose = "token"): Promise<string> =>
  (await listed()).find((key) => key.state === state && key.purpose === purpose)?.kid ?? "";

/** As if every key had been made so much earlier. */
function age(seconds: number): void {
  const db = new DatabaseSync(sqlite);
  db.exec(`update signing_key set created_at = created_at - ${seconds}, since = since - ${seconds}`);
  db.close();
}

async function tokenFor(audience: string): Promise<string> {
  const form = { grant_type: "client_credentials", audience };
  const answer = await service.token(form, { authorization: basic("desk", SECRET) });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

const headerOf = (token: string): { kid: string } =>
  JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());

async function exchange(token: string): Promise<Answer> {
  const svid = await service.svid("agents/planner");
  return service.token({
    ...service.as(svid),
    grant_type: EXCHANGE,
    subject_token: token,
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: "urn:ietf:params:oauth:token-type:jwt",
    audience: "booking",
  });
}

async function isActive(token: string): Promise<unknown> {
  const answer = await service.get("/introspect", {
    method: "POST",
    headers: {
      authorization: basic("gate", SECRET),
      "content-type": "application/x-www-form-urlencoded",
    },
    body: new URLSearchParams({ token }).toString(),
  });
  return answer.body.active;
}

const readAudit = async (token: string): Promise<number> =>
  (await service.get("/audit/events", { headers: { authorization: `Bearer ${token}` } })).status;

const published = async (): Promise<unknown[]> =>
  ((await service.get("/jwks")).body.keys as { kid: string }[]).map(({ kid }) => kid);

async function recorded(type: string): Promise<Record<string, Record<string, unknown>>[]> {
  const events = await on.store.log.read({ log: "admin", limit: 1_000 });
  return events.filter((event) => event.type === type).map(({ body }) => JSON.parse(body));
}

test("keys list prints each key with its state and its next change", async () => {
  const all = await listed();
  assert.deepEqual(all.map(({ purpose, state, alg }) => `${purpose} ${state} ${alg}`).sort(), [
    "checkpoint active EdDSA",
    "checkpoint announced EdDSA",
    "token active ES256",
    "token announced ES256",
  ]);
  for (const { purpose, next_change_at } of all)
    assert.equal(next_change_at !== undefined, purpose === "token");
  const { out } = await keys("list");
  const [active] = out.split("\n").filter((line) => line.includes(" active purpose=token "));
  assert.match(
    active ?? "",
    /^\S{43} active purpose=token alg=ES256 created=\S+ since=\S+ signs-until=\S+Z$/,
  );
});

test("keys rotate waits for the announcement, and then changes the key for the running service", async () => {
  const [first, next] = [await kidOf("active"), await kidOf("announced")];
  const waits = await keys("rotate", "--purpose", "token", "--json");
  const { from, to, at } = JSON.parse(waits.out);
  assert.deepEqual([waits.code, from, to], [0, first, next]);
  const nowSeconds = Math.floor(Date.now() / 1000);
  assert.ok(at > nowSeconds + 3_500 && at <= nowSeconds + 3_600, String(at - nowSeconds));
  assert.equal(headerOf(await tokenFor("planner")).kid, first);
  const [ordered] = await recorded("key.rotation_ordered");
  assert.deepEqual([ordered?.detail?.kid, ordered?.detail?.purpose], [first, "token"]);
  age(3_600);
  const { code, out } = await keys("rotate");
  assert.deepEqual([code, out], [0, `token ES256: ${next} signs now in place of ${first}.\n`]);
  // As it does every two seconds.
  await service.ports.signer.renew();
  assert.equal(headerOf(await tokenFor("planner")).kid, next);
  const [rotated] = await recorded("key.rotated");
  assert.deepEqual([rotated?.detail?.kid, rotated?.detail?.retires], [next, first]);
});

test("KEYS-D-2 what a withdrawn key signed is refused at once, and the announced key signs the next token", async () => {
  const [kid, next] = [await kidOf("active"), await kidOf("announced")];
  const [token, reader] = [await tokenFor("planner"), await tokenFor(`${ISSUER}/api`)];
  const child = String((await exchange(token)).body.access_token);
  assert.deepEqual(
    [token, reader, child].map(headerOf).map((header) => header.kid),
    [kid, kid, kid],
  );
  assert.deepEqual(await Promise.all([token, child].map(isActive)), [true, true]);
  assert.equal(await readAudit(reader), 200);
  age(303);
  const preview = await keys("withdraw", kid, "--dry-run");
  assert.deepEqual([preview.code, preview.out], [0, "Would end: 4 tokens. Nothing was changed.\n"]);
  assert.equal(await isActive(token), true);

  const { code, out } = await keys("withdraw", kid);
  assert.equal(code, 0);
  const [ended, signs] = out.split("\n");
  assert.equal(ended, `Withdrawn: ${kid}. Ended: 4 tokens that it signed and that were still valid.`);
  assert.equal(signs, `${next} signs now; it was announced before, so verifiers know it.`);
  // Before the service has read the keys again.
  assert.deepEqual(await Promise.all([token, child].map(isActive)), [false, false]);
  assert.equal((await exchange(token)).status, 400);
  assert.equal(await readAudit(reader), 401);
  const later = await tokenFor("planner");
  assert.equal(headerOf(later).kid, next);
  assert.equal(await isActive(later), true);
  const kids = await published();
  assert.ok(kids.includes(next) && !kids.includes(kid));
  const [event] = await recorded("key.withdrawn");
  assert.deepEqual([event?.reason, event?.detail?.kid, event?.detail?.successor], ["by_operator", kid, next]);
});

test("a retired key is withdrawn with what it signed, and the active one signs on", async () => {
  const [kid, active] = [await kidOf("retired"), await kidOf("active")];
  const { code, out } = await keys("withdraw", kid, "--json");
  assert.deepEqual([code, JSON.parse(out)], [0, { kid, ended: 1, signs: active, announced: false }]);
  assert.equal(await kidOf("active"), active);
  assert.equal(headerOf(await tokenFor("planner")).kid, active);
});

test("where no successor was announced, a withdrawn key gets one, and verifiers learn of it later", async () => {
  await keys("withdraw", await kidOf("announced"));
  const db = new DatabaseSync(sqlite);
  db.exec("delete from signing_key where state = 'announced' and purpose = 'token'");
  db.close();
  const kid = await kidOf("active");
  const { code, out } = await keys("withdraw", kid);
  assert.equal(code, 0);
  const next = await kidOf("active");
  assert.notEqual(next, kid);
  const says = `${next} signs now. It was announced only shortly before: verifiers learn of it within 300 s, when they fetch /jwks again.`;
  assert.equal(out.split("\n")[1], says);
  assert.equal(headerOf(await tokenFor("planner")).kid, next);
});

test("keys withdraw refuses what it cannot do", async () => {
  const checkpoint = await kidOf("active", "checkpoint");
  const cases: [string[], RegExp][] = [
    [["none"], /^Cannot withdraw none: there is no such key; see "keys list"\.\n$/],
    [[checkpoint], /^Cannot withdraw \S+: it signs checkpoints, .*keys rotate --purpose checkpoint/],
  ];
  for (const [words, message] of cases) {
    const { code, out, err } = await keys("withdraw", ...words);
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, message);
  }
  assert.equal(await kidOf("active", "checkpoint"), checkpoint);
});

test("keys reencrypt replaces the key-encryption key beside a running service, and the old key opens nothing then", async () => {
  const [old] = on.encryptionKeys;
  const encryptionKeys = [randomBytes(32), old] as const;
  const both = { ...on, encryptionKeys, custody: sealedKeys(encryptionKeys) };
  const all = await on.store.keys.list();
  const { code, out } = await runCommand(["keys", "reencrypt"], both);
  assert.equal(code, 0);
  assert.equal(out.split("\n")[0], `Encrypted anew: ${all.length} of ${all.length} keys.`);
  const rows = await on.store.keys.list();
  assert.deepEqual(
    rows.map(({ kid, state }) => [kid, state]),
    all.map(({ kid, state }) => [kid, state]),
  );
  await checkKeys(rows, sealedKeys([encryptionKeys[0]]));
  await assert.rejects(checkKeys(rows, on.custody), { name: "KeysUnusable" });
  // The service has the old key alone, and goes on with what it has opened.
  await service.ports.signer.renew();
  assert.equal(await isActive(await tokenFor("planner")), true);
  const [event] = await recorded("key.reencrypted");
  assert.deepEqual(
    event?.detail?.kids,
    all.map(({ kid }) => kid),
  );
  const again = await runCommand(["keys", "reencrypt", "--json"], both);
  assert.deepEqual(JSON.parse(again.out), { reencrypted: 0, keys: all.length });
  const wrong = await keys("reencrypt");
  assert.deepEqual([wrong.code, wrong.out], [1, ""]);
  assert.match(wrong.err, /^keys\.encryptionKey is not the key .*Nothing was changed\.\n$/);
});

test("with another key-encryption key a command makes no key, and withdraws all the same", async () => {
  const encryptionKeys = [randomBytes(32)] as const;
  const wrong = { ...on, encryptionKeys, custody: sealedKeys(encryptionKeys) };
  const before = await on.store.keys.list();
  const rotated = await runCommand(["keys", "rotate"], wrong);
  assert.deepEqual([rotated.code, rotated.out], [1, ""]);
  assert.match(rotated.err, /^keys\.encryptionKey is not the key .*Nothing was changed\.\n$/);
  assert.deepEqual(await on.store.keys.list(), before);
  const kid = await kidOf("announced");
  const { code, err } = await runCommand(["keys", "withdraw", kid], wrong);
  assert.equal(code, 0);
  assert.match(err, /^The key is withdrawn\. keys\.encryptionKey is not/);
  assert.deepEqual(
    await on.store.keys.list(),
    before.filter((key) => key.kid !== kid),
  );
});

test("a kid that begins with a hyphen is no option", async () => {
  const kid = `-${"a".repeat(42)}`;
  const { code, err } = await keys("withdraw", kid);
  assert.deepEqual([code, err], [1, `Cannot withdraw ${kid}: there is no such key; see "keys list".\n`]);
});

test("a wrong command line is refused before anything is opened", async () => {
  for (const [words, problem] of [
    [["rotate", "--purpose", "people"], "--purpose is not one of token, grant, checkpoint, signal"],
    [["rotate", "--alg", "none"], "--alg is not one of ES256, EdDSA, RS256"],
    [["withdraw"], '"keys withdraw" takes KID'],
    [["list", "--alg", "ES256"], '"keys list" has no option --alg'],
  ] as const) {
    const parsed = await parseCommand(["keys", ...words]);
    assert.deepEqual(parsed, { ok: false, error: problem });
  }
});

test("a new key-encryption key is written for this user only, and no file is overwritten", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mandate key "));
  const file = join(folder, "key");
  const words = ["keys", "new-encryption-key", file];
  const { code, out } = await runCommandLine(words);
  const key = readFileSync(file, "utf8");
  assert.deepEqual([code, Buffer.from(key, "base64url").length, statSync(file).mode & 0o777], [0, 32, 0o600]);
  assert.ok(!out.includes(key));
  assert.match(
    out,
    /One that has keys already needs both for a while:\nname it in keys\.otherEncryptionKey first/,
  );
  const again = await runCommandLine(words);
  assert.equal(again.code, 2);
  assert.match(again.err, /it exists already, and is not overwritten/);
  assert.equal(readFileSync(file, "utf8"), key);
  rmSync(folder, { recursive: true });
});
