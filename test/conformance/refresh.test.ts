/** Refresh tokens against the server as users run it: the page, the wire, processes at once, and two instances. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request as requestTo } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../scripts/command-line.ts";
import { issueClientCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { type Answer, basic, encodeForm } from "../../scripts/http-client.ts";
import { ENDING_REACH_MS } from "../../src/limits/tokens.ts";
import { makeProver } from "../support/dpop.ts";
import { shownBy } from "../support/markup.ts";
import {
  type Asked,
  Browser,
  files,
  formOf,
  forPeople,
  LOOPBACK_REDIRECT,
  PRIVATE,
  PRIVATE_SECRET,
  PUBLIC,
  parametersOf,
  request,
  SCOPES,
  verifierOf,
  WEB_REDIRECT,
} from "../support/people.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { openRefreshRaces, REFRESH_RACES, wrongIn } from "../support/refresh-races.ts";
import { stop } from "../support/stop.ts";
import { type Certificate, claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";
import { assertShort, stretch } from "../support/yardstick.ts";

const HOUR = 3600;
const authorization = basic(PRIVATE, PRIVATE_SECRET);
const TARGET = { "content-type": "application/x-www-form-urlencoded" };
let provider: TestProvider;
let world: World;
let proxy: Certificate;

before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  const operators = await makeAuthority("Operators' authority");
  const { keyPem: key, certPem: cert } = await issueClientCertificate(operators, ["proxy.example"]);
  proxy = { key, cert };
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const listener = { host: "127.0.0.1", port: 0, tls, ca: { file: "operators.pem" }, name: "proxy.example" };
  world = await makeWorld(
    {
      ...base,
      proxy: { ...listener, clientAddress: "X-Forwarded-For" },
      targets: base.targets.map((target) => ({ ...target, introspectors: [PRIVATE] })),
      policies: base.policies.map((rule) => ({ ...rule, refresh: true })),
    },
    { files: { ...files(provider), "operators.pem": operators.certPem }, clock: true },
  );
});
after(() => stop(world, provider));

const OF_PUBLIC = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };

/** A click on the page, and what its code gives. */
async function give(asked: Asked = OF_PUBLIC, form: Asked = {}, headers: Record<string, string> = {}) {
  const browser = new Browser(world, provider);
  const verifier = verifierOf();
  const page = await browser.review(request(verifier, asked));
  const { code = "" } = parametersOf(await browser.decide(page, form));
  const { client_id, redirect_uri = WEB_REDIRECT } = asked as Record<string, string>;
  const answer = await world.token(
    {
      grant_type: "authorization_code",
      code,
      redirect_uri,
      code_verifier: verifier,
      ...(headers.authorization === undefined && { client_id: client_id ?? "" }),
    },
    headers,
  );
  assert.equal(answer.status, 200, answer.text);
  return { page, answer, token: String(answer.body.refresh_token) };
}

const refresh = (
  token: string,
  extra: Record<string, string> = { client_id: PUBLIC },
  headers: Record<string, string> = {},
): Promise<Answer> => world.token({ grant_type: "refresh_token", refresh_token: token, ...extra }, headers);

const isActive = async ({ body }: Answer): Promise<unknown> => {
  const asked = { authorization, ...TARGET };
  const form = encodeForm({ token: String(body.access_token) });
  return (await world.get("/introspect", { method: "POST", headers: asked, body: form })).body.active;
};

test("REFRESH-D-2, MCP-O.10-2, PROD-4.4-12 the metadata name the grant type and the scope offline_access", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.ok((body.grant_types_supported as string[]).includes("refresh_token"));
  assert.deepEqual(body.scopes_supported, [...SCOPES, "offline_access"]);
});

test("HTTP-D-41 no answer tells when a refresh token expires", async () => {
  const given = await give();
  const members = ["access_token", "expires_in", "refresh_token", "scope", "token_type"];
  for (const { body } of [given.answer, await refresh(given.token)]) {
    assert.deepEqual(Object.keys(body).sort(), members);
  }
});

test("REFRESH-D-1, REFRESH-D-2 the page says for how long, and the scope never reaches a token", async () => {
  const brief = await give();
  assert.match(brief.page.text, /12 hours/);
  assert.deepEqual(formOf(brief.page).scopes, SCOPES);
  const scope = [...SCOPES, "offline_access"].join(" ");
  const long = await give({ ...OF_PUBLIC, scope });
  assert.deepEqual(formOf(long.page).scopes, [...SCOPES, "offline_access"]);
  assert.match(long.page.text, /30 days instead of 12 hours, as long as it is used every 7 days/);
  for (const answer of [long.answer, await refresh(long.token)]) {
    assert.equal(answer.body.scope, SCOPES.join(" "));
    assert.equal(claimsOf(answer.body.access_token).scope, SCOPES.join(" "));
  }
  // A wish that names no other scope leaves the scopes to the page.
  const alone = await give({ ...OF_PUBLIC, scope: "offline_access" });
  assert.equal(alone.answer.body.scope, SCOPES.join(" "));
});

test("REFRESH-D-5, FAPI2-5.3.2-1 five processes that share a token all go on within a second, with one successor", async () => {
  const { token } = await give();
  const refreshing = stretch();
  const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(token)));
  assertShort(refreshing, 1_000, "five refreshes");
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  assert.equal(new Set(answers.map(({ body }) => body.refresh_token)).size, 1);
  assert.deepEqual(await Promise.all(answers.map(isActive)), [true, true, true, true, true]);
  assert.equal((await refresh(String(answers[0]?.body.refresh_token))).status, 200);
});

/** A refresh of the public client from a given address of this machine. */
async function refreshFrom(localAddress: string, token: string) {
  const at = { host: "127.0.0.1", port: world.server.port, servername: "as.example", ca: world.ca };
  const options = { ...at, localAddress, agent: false, method: "POST", path: "/token" };
  const asked = requestTo({ ...options, headers: { host: "as.example", ...TARGET } } as object);
  asked.end(encodeForm({ grant_type: "refresh_token", refresh_token: token, client_id: PUBLIC }));
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(await text(response)) };
}

test("REFRESH-D-21 a token that comes again from another address is told to its user, and the second time ends what it gave", async () => {
  const { token } = await give();
  const next = await refresh(token);
  const elsewhere = await refreshFrom("127.0.0.2", token);
  assert.deepEqual([elsewhere.status, elsewhere.body.refresh_token], [200, next.body.refresh_token]);
  const event = (await world.events()).findLast(({ type }) => type === "refresh.retried_elsewhere");
  assert.equal((event?.request as { source_ip?: string } | undefined)?.source_ip, "127.0.0.2");
  const page = await accountOf("alice");
  assert.match(page, /Used the same access from two networks within seconds/);
  assert.match(page, /Two networks used the same access of this agent/);
  const last = await refresh(String(next.body.refresh_token));
  const again = await refreshFrom("127.0.0.3", String(next.body.refresh_token));
  assert.deepEqual([again.status, again.body.error], [400, "invalid_grant"]);
  assert.equal((await refresh(String(last.body.refresh_token))).body.error, "invalid_grant");
  assert.deepEqual(await Promise.all([next, last].map(isActive)), [false, false]);
  assert.match(await accountOf("alice"), /its access was used from two places/);
});

test("REFRESH-D-21, RFC7239-7.4-1 behind the proxy the address that it tells is the source", async () => {
  const { token } = await give();
  const behind = Number(
    world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? [])[0],
  );
  const form = { grant_type: "refresh_token", refresh_token: token, client_id: PUBLIC };
  const from = async (address: string) =>
    (await world.token(form, { "X-Forwarded-For": `203.0.113.9, ${address}` }, proxy, behind)).status;
  assert.deepEqual([await from("2001:db8:1:2::1"), await from("[2001:db8:1:2::ff]:80")], [200, 200]);
  assert.deepEqual([await from("2001:db8:1:3::1"), await from("2001:db8:1:2::1")], [200, 200]);
  assert.equal(await from("192.0.2.60"), 400);
});

/** What the account page shows this user. */
async function accountOf(user: string): Promise<string> {
  const browser = new Browser(world, provider);
  const choice = await browser.get("/account");
  return shownBy((await browser.follow(await browser.signIn(choice, user))).text);
}

test("RFC6749-3.2.1-1, RFC6749-6-3, RFC6749-6-4 a client that has a credential proves itself to refresh", async () => {
  const { token } = await give({}, {}, { authorization });
  assert.match(token, /^mrt_/);
  const bare = await refresh(token, { client_id: PRIVATE });
  assert.equal(bare.body.error, "invalid_client");
  const wrong = await refresh(token, {}, { authorization: basic(PRIVATE, "wrong") });
  assert.deepEqual([wrong.status, wrong.body.error], [401, "invalid_client"]);
  const good = await refresh(token, {}, { authorization });
  assert.deepEqual([good.status, good.body.refresh_token], [200, undefined]);
});

test("REFRESH-D-7, REFRESH-D-8, REFRESH-D-9, RFC6749-5.2-6 whatever is wrong with a refresh token, the answer is the same", async () => {
  const [owner, thief] = [await makeProver(), await makeProver()];
  const proofOf = (by: typeof owner) => ({ dpop: by.prove(`${ISSUER}/token`) });
  const old = await give();
  const second = await refresh(old.token);
  await refresh(String(second.body.refresh_token));
  const bound = await (async () => {
    const browser = new Browser(world, provider);
    const verifier = verifierOf();
    const back = await browser.decide(await browser.review(request(verifier, OF_PUBLIC)));
    const form = { grant_type: "authorization_code", code_verifier: verifier, ...OF_PUBLIC };
    return world.token({ ...form, code: parametersOf(back).code ?? "" }, proofOf(owner));
  })();
  const ofOther = await give({}, {}, { authorization });
  const refused = [
    await refresh("mrt_unknown"),
    await refresh(`mrt_${"A".repeat(43)}`),
    await refresh(ofOther.token),
    await refresh(String(bound.body.refresh_token)),
    await refresh(String(bound.body.refresh_token), { client_id: PUBLIC }, proofOf(thief)),
    await refreshFrom("127.0.0.2", old.token),
    await refreshFrom("127.0.0.2", old.token),
  ];
  for (const { status, body, headers } of refused) {
    assert.deepEqual([status, headers["cache-control"]], [400, "no-store"]);
    assert.deepEqual(body, refused[0]?.body);
  }
  assert.equal(refused[0]?.body.error, "invalid_grant");
  assert.equal(await isActive(second), false);
  // What only failed for others goes on.
  assert.equal((await refresh(ofOther.token, {}, { authorization })).status, 200);
  const again = await refresh(String(bound.body.refresh_token), { client_id: PUBLIC }, proofOf(owner));
  assert.deepEqual([again.status, again.body.token_type], [200, "DPoP"]);
});

test("REFRESH-D-15, RFC9700-4.14.2-5 an operator ends one grant, and those of all users, by command", async () => {
  const [one, other] = [await give(), await give()];
  const issued = (await world.events()).filter(({ type }) => type === "refresh.issued");
  const { id } = (issued.at(-2) ?? assert.fail("nothing was given")).grant as { id: string };
  const end = async (...words: string[]): Promise<string> => {
    const run = await runCommandLine(["--config", world.configFile, "tokens", "end", ...words]);
    assert.equal(run.code, 0, run.err);
    return run.out;
  };
  assert.match(
    await end("--grant", id),
    /^Ended the refresh tokens of the user's grant \S+, and what was issued for them: 1 token that was still valid\.\nRefresh tokens that were issued before/,
  );
  assert.equal((await refresh(one.token)).body.error, "invalid_grant");
  const next = await refresh(other.token);
  assert.equal(next.status, 200);
  assert.match(
    await end("--all-refresh"),
    /\nRefresh tokens that were issued before are refused from now on/,
  );
  assert.equal((await refresh(String(next.body.refresh_token))).body.error, "invalid_grant");
  assert.equal(await isActive(next), false);
  // What users give after the cut-off goes on.
  world.pass(ENDING_REACH_MS / 1000 + 1);
});

test("MCPC-D-25, HTTP-D-39, AUDIT-D-2, REFRESH-D-19 a dead token that comes again and again is recorded until its source fails too often, and refused in the same way after that", async () => {
  const { token } = await give();
  const revoked = await world.get("/revoke", {
    method: "POST",
    headers: TARGET,
    body: encodeForm({ token, client_id: PUBLIC }),
  });
  assert.equal(revoked.status, 200);
  const before = (await world.events()).length;
  const statuses = new Set<number>();
  for (let attempt = 0; attempt < 60; attempt++) statuses.add((await refresh(token)).status);
  assert.deepEqual([...statuses], [400]);
  const events = (await world.events()).slice(before);
  const denied = events.filter(({ type }) => type === "token.denied");
  assert.ok(denied.length > 0 && denied.length < 60, `${denied.length} events`);
  assert.ok(denied.every(({ reason }) => reason === "refresh_token_ended"));
  world.pass(120);
});

test("REFRESH-D-2, REFRESH-D-13 what the user ticked decides how long the client gets on", async () => {
  const scope = [...SCOPES, "offline_access"].join(" ");
  const asked = { ...OF_PUBLIC, scope };
  const unasked = await give(OF_PUBLIC);
  const unticked = await give(asked, { all: "", scope: SCOPES });
  const ticked = await give(asked, { all: "", scope: ["notes.read", "offline_access"] });
  assert.equal(ticked.answer.body.scope, "notes.read");
  world.pass(12 * HOUR);
  for (const { token } of [unasked, unticked]) {
    assert.equal((await refresh(token)).body.error, "invalid_grant");
  }
  const next = await refresh(ticked.token);
  assert.equal(next.status, 200, next.text);
  world.pass(7 * 24 * HOUR);
  assert.equal((await refresh(String(next.body.refresh_token))).body.error, "invalid_grant");
});

test("REFRESH-D-4, REFRESH-D-5, REFRESH-D-15 at two instances one token has one successor, and nothing of a family outlives its end", async () => {
  const database = await sharePostgres();
  const races = await openRefreshRaces(await freshDatabase(database), 2);
  try {
    for (const kind of REFRESH_RACES) {
      assert.equal(wrongIn(kind, await races.race(kind)), undefined, kind);
    }
  } finally {
    await races.stop();
    await database.stop();
  }
});
