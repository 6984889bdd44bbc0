/** The source of a request behind the proxy: the address that the proxy tells, in the one field that is configured. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { bundle, mintJwtSvid } from "../../scripts/dev-keys.ts";
import { issueClientCertificate, makeAuthority, makeTrustDomain } from "../../scripts/dev-pki.ts";
import type { Answer } from "../../scripts/http-client.ts";
import { EARLY_LOOK_SECONDS, EARLY_LOOK_WAITERS_MAX } from "../../src/limits/fetching.ts";
import type { ForwardedField } from "../../src/spec/rfc7239.ts";
import { stop } from "../support/stop.ts";
import { until, whilePassing } from "../support/until.ts";
import {
  type Certificate,
  type Form,
  ISSUER,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const PROXY = "proxy.example";
const FAILURES = 5;
const SECRET = "f7c3bc1d808e04732adf679965ccc34c";
const RIGHT: Form = {
  grant_type: "client_credentials",
  audience: API,
  client_id: "posted",
  client_secret: SECRET,
};
const WRONG: Form = { ...RIGHT, client_secret: "a guess" };
const UNDECIDED: Form = { ...RIGHT, scope: "write" };

const operators = await makeAuthority("Operators' authority");

async function identity(name: string): Promise<Certificate> {
  const { keyPem, certPem } = await issueClientCertificate(operators, [name]);
  return { key: keyPem, cert: certPem };
}

const proxy = await identity(PROXY);
const another = await identity("another.example");

type Proxied = { world: World; behind: number };

async function open(clientAddress: ForwardedField): Promise<Proxied> {
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const listener = { host: "127.0.0.1", port: 0, tls, ca: { file: "operators.pem" }, name: PROXY };
  const world = await makeWorld(
    {
      proxy: { ...listener, clientAddress },
      clients: { posted: { method: "client_secret_post", secrets: [SECRET] } },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        { id: "a", allow: "client_credentials", targets: [API], scopes: ["read"], clients: ["posted"] },
        { id: "b", allow: "client_credentials", targets: [API], scopes: ["read"], actors: [workload("*")] },
      ],
      limits: { failuresPerMinuteBySource: FAILURES, failuresPerMinuteByClient: 1000 },
    },
    { files: { "operators.pem": operators.certPem }, clock: true },
  );
  const [behind = 0] = world.server.lines.flatMap(
    (line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? [],
  );
  return { world, behind: Number(behind) };
}

let forwarded: Proxied;
let listed: Proxied;
before(async () => {
  [forwarded, listed] = await Promise.all([open("Forwarded"), open("X-Forwarded-For")]);
});
after(() => stop(forwarded?.world, listed?.world));

/** Of the proxy. */
const send = (form: Form, headers: Record<string, string>, at = forwarded): Promise<Answer> =>
  at.world.token(form, headers, proxy, at.behind);

async function failUntilTold(headers: Record<string, string>, at = forwarded): Promise<void> {
  for (let tried = 0; (await send(WRONG, headers, at)).status !== 429; tried++) {
    assert.ok(tried <= FAILURES, `${tried} failures`);
  }
}

/** The source of a request that is refused after authentication, as the auditor reads it. */
async function sourceOf(at: Proxied, ask: () => Promise<Answer>): Promise<unknown> {
  const answer = await ask();
  assert.equal(answer.body.error, "invalid_scope", answer.text);
  const event = (await at.world.events()).findLast(({ type }) => type === "token.denied");
  return Object(event?.request).source_ip;
}

const fields: readonly (readonly [string, () => Proxied, (address: string) => Record<string, string>])[] = [
  ["RFC7239-4-1 Forwarded", () => forwarded, (address) => ({ Forwarded: `for=192.0.2.1, for="${address}"` })],
  [
    "RFC7239-7.4-1 X-Forwarded-For",
    () => listed,
    (address) => ({ "X-Forwarded-For": `192.0.2.1, ${address}` }),
  ],
];
for (const [field, place, tell] of fields) {
  test(`${field}: failures count for the address that the proxy added, and for no other behind it`, async () => {
    const at = place();
    await failUntilTold(tell("192.0.2.60"), at);
    assert.equal((await send(WRONG, tell("192.0.2.61"), at)).status, 400);
    assert.equal((await send(WRONG, tell("[2001:db8::60]"), at)).status, 400);
    assert.equal((await send(RIGHT, tell("192.0.2.60"), at)).status, 200);
    assert.equal(await sourceOf(at, () => send(UNDECIDED, tell("192.0.2.60:4711"), at)), "192.0.2.60");
  });
}

const TOLD = { Forwarded: "for=192.0.2.70" };

test("RFC7239-8.1-1 only the proxy that has proven itself tells addresses, and only in the configured field", async () => {
  const { world, behind } = forwarded;
  assert.equal(await sourceOf(forwarded, () => world.token(UNDECIDED, TOLD, proxy)), "127.0.0.1");
  assert.equal(
    await sourceOf(forwarded, () => send(UNDECIDED, { "X-Forwarded-For": "192.0.2.70" })),
    "127.0.0.1",
  );
  assert.equal(await sourceOf(forwarded, () => send(UNDECIDED, TOLD)), "192.0.2.70");
  const refused = await world.token(UNDECIDED, TOLD, another, behind);
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_request"]);
});

const shared: readonly (readonly [string, Record<string, string>])[] = [
  ["RFC7239-6.2-1 an unknown client", { Forwarded: "for=unknown" }],
  ["RFC7239-6.3-1 an obfuscated client", { Forwarded: "for=_hidden" }],
  ["RFC7239-4-1 no field", {}],
  ["RFC7239-4-1 a field that a client spoiled", { Forwarded: 'for="_x, for=192.0.2.80' }],
];
for (const [what, headers] of shared) {
  test(`HTTP-D-6, ${what}: the source is the proxy's own address`, async () => {
    assert.equal(await sourceOf(forwarded, () => send(UNDECIDED, headers)), "127.0.0.1");
  });
}

test("RFC7239-8.1-1 clients without a readable address share one source, and a valid one among them is served", async () => {
  const [first, second] = [{ Forwarded: 'for="' }, { Forwarded: "for=_other" }];
  await failUntilTold(first);
  assert.equal((await send(WRONG, second)).status, 429);
  assert.equal((await send(RIGHT, second)).status, 200);
  assert.equal((await send(WRONG, { Forwarded: "for=192.0.2.90" })).status, 400);
});

test("the line of a request behind the proxy has the address of its client, beside that of the proxy", async () => {
  const { world } = forwarded;
  const lineOf = async ({ headers }: Answer) => {
    const find = () => world.server.lines.find((line) => line.includes(String(headers["x-request-id"])));
    await until(() => find() !== undefined, "the line of the request");
    const { address, clientAddress } = JSON.parse(find() ?? "");
    return { address, clientAddress };
  };
  const told = { Forwarded: "for=192.0.2.99" };
  assert.deepEqual(await lineOf(await send(WRONG, told)), {
    address: "127.0.0.1",
    clientAddress: "192.0.2.99",
  });
  const direct = await lineOf(await world.token(WRONG, told));
  assert.deepEqual(direct, { address: "127.0.0.1", clientAddress: undefined }, "only the proxy tells");
});

test("HTTP-D-6 the log tells once of a proxy that does not tell the address of its client", async () => {
  const told = (): string[] =>
    forwarded.world.server.lines.filter((line) => line.includes("without a Forwarded field"));
  await send(RIGHT, {});
  await send(RIGHT, {});
  assert.equal(told().length, 1);
});

test("RFC8725-3.10-v1 a source that floods with unknown keys takes no place from others that wait for a new key", async () => {
  const { world } = forwarded;
  const [next, strange] = await Promise.all([TRUST_DOMAIN, TRUST_DOMAIN].map(makeTrustDomain));
  assert.ok(next && strange);
  const by = async (domain: typeof next): Promise<Form> => {
    const client_assertion = await mintJwtSvid(domain, { sub: workload("w"), aud: ISSUER });
    return { grant_type: "client_credentials", audience: API, ...world.as(client_assertion) };
  };
  const [honest, forged] = [await by(next), await by(strange)];
  const flood = { Forwarded: "for=192.0.2.66" };
  // Its first look is at once: from now on its source has failed, and the next look is not due yet.
  assert.notEqual((await send(forged, flood)).status, 200);
  writeFileSync(join(world.folder, "bundle.json"), JSON.stringify(bundle(next)));
  let refused = 0;
  const failing = Array.from({ length: EARLY_LOOK_WAITERS_MAX + 1 }, async () => {
    await send(forged, flood);
    refused += 1;
  });
  await until(() => refused > 0, "all places are taken");
  const served = send(honest, { Forwarded: "for=192.0.2.67" });
  await whilePassing(world, EARLY_LOOK_SECONDS, Promise.all([served, ...failing]));
  assert.equal((await served).status, 200);
});
