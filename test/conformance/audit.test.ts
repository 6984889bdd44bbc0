/** GET /audit/events and GET /audit/checkpoints over TLS. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { supportNumber } from "../../src/audit/support-number.ts";
import { verifyAudit } from "../../src/cli/audit/export.ts";
import { leafOf } from "../support/journal.ts";
import { forget, loadVerifier } from "../support/receipts.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "auditor-auditor-auditor-auditor-1";
const NDJSON = "application/x-ndjson";
const API = "https://api.example";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read", "trips.book"];
const delegation = { allow: "delegation", subjects: { issuers: [IDP] }, consent: "record", scopes };

const CONFIGURATION = {
  audit: { instance: "test", witness: { file: "witness" }, checkpoint: { events: 10, seconds: 1 } },
  clients: {
    auditor: { method: "client_secret_basic", secrets: [SECRET] },
    other: { method: "client_secret_basic", secrets: [SECRET.toUpperCase()] },
  },
  targets: [
    { names: ["planner-agent"], owners: [planner], scopes },
    { names: ["booking-agent"], owners: [booking], scopes },
    { names: [API], scopes },
  ],
  policies: [
    {
      id: "auditors",
      allow: "client_credentials",
      clients: ["auditor"],
      targets: [`${ISSUER}/api`],
      scopes: ["audit:read"],
    },
    {
      id: "explainers",
      allow: "client_credentials",
      clients: ["other"],
      targets: [`${ISSUER}/api`],
      scopes: ["policy:explain", "receipt:read"],
    },
    {
      id: "to-booking",
      actors: [planner],
      subjectToken: { audiences: [ISSUER] },
      targets: ["booking-agent"],
      ...delegation,
    },
    {
      id: "to-api",
      actors: [booking],
      subjectToken: { audiences: ["booking-agent"] },
      targets: [API],
      ...delegation,
    },
  ],
};

let world: World;
let token: string;
/** The `jti` of the first hop, of the second, and of another second hop. */
let jtis: string[];
/** The request that was refused. */
let refusedId: string;
before(async () => {
  world = await makeWorld(CONFIGURATION);
  token = await credentials("auditor", SECRET, "audit:read");
  await world.consent("alice", "agents/planner", "booking-agent", scopes);
  await world.consent("alice", "agents/booking", API, scopes);
  const userToken = await world.idp.mintUserToken({
    sub: "alice",
    aud: ISSUER,
    scope: scopes.join(" "),
    expSeconds: 900,
  });
  const first = await exchange("agents/planner", userToken, JWT, "booking-agent");
  const second = await exchange("agents/booking", first, ACCESS_TOKEN, API);
  const sibling = await exchange("agents/booking", first, ACCESS_TOKEN, API);
  jtis = [first, second, sibling].map((one) => String(claimsOf(one).jti));
  const refused = await tryExchange("agents/planner", userToken, JWT, "planner-agent");
  assert.equal(refused.status, 400);
  refusedId = String(refused.headers["x-request-id"]);
  const traced = await read({}, { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` });
  assert.equal(traced.status, 200, traced.text);
});
after(() => stop(world));

async function credentials(client: string, secret: string, scope: string): Promise<string> {
  const form = { grant_type: "client_credentials", resource: `${ISSUER}/api`, scope };
  const answer = await world.token(form, { authorization: basic(client, secret) });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

async function tryExchange(path: string, subject: string, type: string, target: string): Promise<Answer> {
  const svid = await world.svid(path);
  const actor = { actor_token: svid, actor_token_type: JWT };
  const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: type, audience: target };
  return world.token({ ...form, ...actor, ...world.as(svid) });
}

async function exchange(path: string, subject: string, type: string, target: string): Promise<string> {
  const answer = await tryExchange(path, subject, type, target);
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

type Query = Record<string, string>;
const read = (query: Query = {}, headers: Query = {}, path = "/audit/events"): Promise<Answer> =>
  world.get(`${path}?${new URLSearchParams(query)}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  });

type Found = Record<string, unknown> & {
  log: string;
  seq: number;
  time: string;
  type: string;
  reason: string;
  granted?: { jti: string };
  detail?: Record<string, unknown>;
};

async function events(query: Query = {}): Promise<Found[]> {
  const answer = await read({ limit: "1000", ...query });
  assert.equal(answer.status, 200, answer.text);
  return answer.body.events as Found[];
}

const places = (found: readonly Found[]): string[] => found.map(({ log, seq }) => `${log}/${seq}`);

const member = (event: Found | undefined, name: string): Partial<Query> => (event?.[name] ?? {}) as Query;

// --- access ---------------------------------------------------------------------------------------------------------

test("AUDIT-D-6 reading the trail requires its scope, and refused attempts are recorded", async () => {
  for (const path of ["/audit/events", "/audit/checkpoints"]) {
    assert.equal((await world.get(path)).status, 401);
    const other = await credentials("other", SECRET.toUpperCase(), "policy:explain");
    const refused = await world.get(path, { headers: { authorization: `Bearer ${other}` } });
    assert.equal(refused.status, 403, refused.text);
    const [last] = (await events({ type: "admin.access", outcome: "deny" })).slice(-1);
    assert.equal(member(last, "request").endpoint, path);
  }
});

test("AUDIT-D-6 a reading is recorded with its query before anything is returned", async () => {
  for (const [path, query] of [
    ["/audit/events", { rule: "to-api", limit: "7" }],
    ["/audit/checkpoints", { limit: "3" }],
  ] as const) {
    assert.equal((await read({ ...query }, {}, path)).status, 200);
    const [last] = (await events({ type: "admin.access", outcome: "allow" })).slice(-1);
    assert.deepEqual(last?.detail, { query, continued: false });
    assert.equal(member(last, "request").endpoint, path);
    assert.equal(member(last, "client").client_id, "auditor");
    assert.match(member(last, "policy").digest ?? "", /^sha256:/);
  }
});

test("responses with events must not be cached", async () => {
  const answer = await read();
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers["content-type"], "application/json");
});

// --- requests -------------------------------------------------------------------------------------------------------

test("AUDIT-D-9 every event that a request caused has its id, and no other event has one", async () => {
  await read();
  await read({}, { authorization: "Bearer wrong" });
  const own = /^(log\.|config\.|key\.|trust_bundle\.|key_set\.|consent\.recorded|client\.auth_failed)/;
  for (const event of await events())
    assert.equal(idOf(event) === undefined, own.test(event.type), event.type);
});

const lineOf = (answer: Answer): Record<string, unknown> => {
  const id = String(answer.headers["x-request-id"]);
  return JSON.parse(world.server.lines.find((line) => line.includes(id)) ?? "{}");
};

test("the log line of a refused request names the malformed parameter, and of an unknown one nothing that was sent", async () => {
  const twice = await world.token("grant_type=client_credentials&actor_token=a&actor_token=b");
  const unknown = await world.token("grant_type=client_credentials&s3cr3t=a&s3cr3t=b");
  const denied = await world.token(
    { grant_type: "client_credentials", audience: "https://nowhere.example" },
    { authorization: basic("auditor", SECRET) },
  );
  // The line follows the answer; the next answer follows the line.
  await read();
  const refusedBy = (answer: Answer) => [lineOf(answer).refused, lineOf(answer).parameter];
  assert.deepEqual(refusedBy(twice), ["parameter_repeated", "actor_token"]);
  assert.deepEqual(refusedBy(unknown), ["parameter_repeated", "other"]);
  assert.deepEqual(refusedBy(denied), ["target_unknown", undefined]);
  assert.ok(!world.server.lines.some((line) => line.includes("s3cr3t")));
});

test("HTTP-D-14 the log line of a refused authentication has its reason, and the client that was named as unproven", async () => {
  const form = { grant_type: "client_credentials" };
  const wrong = await world.token(form, { authorization: basic("auditor", "wrong") });
  const refused = await read({}, { authorization: `Bearer ${token.slice(0, -4)}AAAA` });
  const good = await read();
  // The line follows the answer; the next answer follows the line.
  await read();
  const [atToken, atApi] = [lineOf(wrong), lineOf(refused)];
  assert.deepEqual([atToken.refused, atToken.unprovenClient], ["secret_wrong", "auditor"]);
  assert.deepEqual([atApi.refused, atApi.unprovenClient], ["signature_invalid", "auditor"]);
  const { status, refused: none, unprovenClient } = lineOf(good);
  assert.deepEqual([status, none, unprovenClient], [200, undefined, undefined]);
});

// --- filters --------------------------------------------------------------------------------------------------------

const idOf = ({ request }: Found): unknown => (request as Query | undefined)?.id;

const filters: [string, () => Query, (event: Found) => boolean][] = [
  ["type", () => ({ type: "token_exchange.delegation" }), ({ type }) => type === "token_exchange.delegation"],
  ["request", () => ({ request: refusedId }), (event) => idOf(event) === refusedId],
  [
    "request, by its support number as it is typed",
    () => ({ request: (supportNumber(refusedId) ?? "").toLowerCase().replace("-", " ") }),
    (event) => idOf(event) === refusedId,
  ],
  ["outcome", () => ({ outcome: "deny" }), ({ outcome }) => outcome === "deny"],
  ["client", () => ({ client: "auditor" }), ({ client }) => (client as Query)?.client_id === "auditor"],
  ["rule", () => ({ rule: "to-booking" }), ({ policy }) => (policy as Query)?.rule_id === "to-booking"],
  [
    "target",
    () => ({ target: "planner-agent" }),
    ({ requested }) => JSON.stringify(requested)?.includes('"planner-agent"') ?? false,
  ],
  [
    "subject",
    () => ({ iss: IDP, sub: "alice", outcome: "allow", type: "token_exchange.delegation" }),
    ({ type }) => type === "token_exchange.delegation",
  ],
  [
    "actor anywhere in the chain",
    () => ({ actor: planner, rule: "to-api" }),
    ({ policy }) => (policy as Query)?.rule_id === "to-api",
  ],
  [
    "jti that was issued or presented",
    () => ({ jti: jtis[0] ?? "" }),
    (event) => JSON.stringify(event).includes(jtis[0] ?? ""),
  ],
  ["jti that was issued", () => ({ jti: jtis[1] ?? "" }), ({ granted }) => granted?.jti === jtis[1]],
  [
    "scope that was requested or granted",
    () => ({ scope: "trips.book" }),
    ({ granted, requested, detail }) =>
      [granted, requested, detail].some((one) => / trips\.book$/.test(String((one as Query)?.scope))),
  ],
  ["reason", () => ({ reason: "rule_match", type: "token.issued" }), ({ type }) => type === "token.issued"],
  ["trace", () => ({ trace: TRACE }), (event) => JSON.stringify(event.request)?.includes(TRACE) ?? false],
];
for (const [what, query, fits] of filters) {
  test(`PROD-6.3-3 events by ${what} are shown, all of them and no others`, async () => {
    const found = await events(query());
    const all = (await events()).filter(fits);
    assert.ok(found.length > 0);
    // The first reading is itself an event in the second.
    assert.deepEqual(places(found), places(all).slice(0, found.length));
    assert.ok(all.slice(found.length).every(({ type }) => type === "admin.access"));
  });
}

test("PROD-6.3-3 events of a period are shown, its end excluded", async () => {
  const all = await events();
  const [from, to] = [all[3]?.time ?? "", all.at(-1)?.time ?? ""];
  const found = await events({ from, to });
  assert.deepEqual(places(found), places(all.filter(({ time }) => time >= from && time < to)));
  assert.ok(found.length > 0);
});

test("PROD-6.3-3 a filter without a match shows nothing", async () => {
  for (const query of [
    { client: "unknown" },
    { jti: "none" },
    { jti: "none", lineage: "1" },
    { iss: IDP, sub: "bob" },
  ]) {
    assert.deepEqual(await events(query), []);
  }
});

const wrong: Record<string, string> = {
  "an unknown parameter": "clinet=x",
  "a duplicate parameter": "client=x&client=y",
  "an empty parameter": "client=",
  "a date without a time": "from=2026-01-01",
  "a time that does not exist": "to=2026-13-01T00:00:00Z",
  "an issuer without a subject": "iss=https://idp.example",
  "a subject without an issuer": "sub=alice",
  "a lineage without a token": "lineage=1",
  "a type that no event has": "type=token.stolen",
  "an outcome that no event has": "outcome=denied",
  "a reason that no event has": "reason=because",
  "a trace that is not the id of one": "trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  "a limit that is not a number": "limit=many",
  "a limit of zero": "limit=0",
  "an invalid cursor": "cursor=abc",
  "a cursor of another shape": `cursor=${Buffer.from('{"spans":[["a",0]]}').toString("base64url")}`,
  "a malformed escape": "client=%zz",
  "bytes that are not UTF-8": "client=%ff",
};
for (const [what, query] of Object.entries(wrong)) {
  test(`PROD-6.3-3 ${what} is refused`, async () => {
    const answer = await world.get(`/audit/events?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(answer.status, 400, answer.text);
    assert.equal(answer.body.error, "invalid_request");
  });
}

// --- lineage --------------------------------------------------------------------------------------------------------

test("AUDIT-D-5, PROD-6.1-3 the whole lineage of a token is shown: ancestors, itself, descendants", async () => {
  const [first, second, sibling] = jtis;
  const issued = async (jti = "") =>
    (await events({ jti, lineage: "1" })).flatMap(({ granted }) => granted?.jti ?? []);
  assert.deepEqual(await issued(first), [first, second, sibling]);
  assert.deepEqual(await issued(second), [first, second]);
  assert.deepEqual(await issued(sibling), [first, sibling]);
  const [whole] = await events({ jti: second ?? "", lineage: "1" });
  assert.equal(member(whole, "actor").sub, planner);
  assert.equal(member(whole, "policy").rule_id, "to-booking");
});

// --- paging ---------------------------------------------------------------------------------------------------------

test("PROD-6.3-3 pages neither skip nor repeat events while others are written, and continue with those", async () => {
  const busy = Array.from({ length: 20 }, () => credentials("auditor", SECRET, "audit:read"));
  const seen: string[] = [];
  let cursor: string | undefined;
  for (let more = true; more; ) {
    const answer = await read({ limit: "3", ...(cursor !== undefined && { cursor }) });
    assert.equal(answer.status, 200, answer.text);
    const found = answer.body.events as Found[];
    assert.ok(found.length <= 3);
    seen.push(...places(found));
    more = answer.body.more === true;
    assert.equal(answer.headers.link !== undefined, more);
    assert.equal(answer.headers["audit-cursor"], answer.body.cursor);
    cursor = String(answer.body.cursor);
  }
  await Promise.all(busy);
  // Events that were written since, and those that each reading writes, occur once each.
  for (let round = 0; round < 4; round++) {
    const answer = await read({ limit: "1000", cursor: cursor ?? "" });
    seen.push(...places(answer.body.events as Found[]));
    cursor = String(answer.body.cursor);
    assert.equal(answer.body.more, false);
  }
  assert.equal(new Set(seen).size, seen.length);
  const all = places(await events()).filter((place) => !seen.includes(place));
  // Unseen are only the last reading, which was recorded after its own listing, and later events.
  const left = (await events()).filter(({ log, seq }) => all.includes(`${log}/${seq}`));
  assert.ok(
    left.every(({ type }) => type === "admin.access" || type === "log.checkpoint"),
    String(all),
  );
  assert.ok(left.length <= 3);
});

test("PROD-6.3-3 the link to the next page is the same query with a cursor", async () => {
  const answer = await read({ limit: "2", type: "log.genesis", outcome: "allow" });
  assert.equal(answer.headers.link, undefined);
  const paged = await read({ limit: "1", client: "auditor" });
  const [, target = ""] = /^<(.+)>; rel="next"$/.exec(paged.headers.link ?? "") ?? [];
  const next = new URL(target);
  assert.equal(next.origin + next.pathname, `${ISSUER}/audit/events`);
  assert.equal(next.searchParams.get("client"), "auditor");
  const second = await read(Object.fromEntries(next.searchParams));
  const [one, two] = [paged, second].map(({ body }) => (body.events as Found[])[0]);
  assert.deepEqual(
    places(await events({ client: "auditor" })).slice(0, 2),
    places([one, two].filter((each) => each !== undefined)),
  );
});

// --- formats --------------------------------------------------------------------------------------------------------

test("PROD-6.3-3 a page as CSV has a header, a row for each event, and the cursor and the next page in its fields", async () => {
  const query = { type: "token_exchange.delegation", limit: "2" };
  const answer = await read(query, { accept: "text/csv" });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["content-type"], "text/csv; charset=utf-8; header=present");
  const [header = "", ...rows] = answer.text.split("\r\n");
  assert.equal(rows.pop(), "");
  const names = header.split(",");
  const shown = rows.map((row) => Object.fromEntries(row.split(",").map((cell, at) => [names[at], cell])));
  const wanted = (await events({ type: query.type })).slice(0, 2);
  assert.deepEqual(
    shown.map(({ time, log, seq, subject, scope, jti }) => [
      time,
      `${log}/${seq}`,
      subject,
      scope,
      // One id in 64 begins as a formula does, and has an apostrophe before it.
      jti?.replace(/^'(?=-)/, ""),
    ]),
    wanted.map((event) => [
      event.time,
      `${event.log}/${event.seq}`,
      "alice",
      scopes.join(" "),
      event.granted?.jti,
    ]),
  );
  const [, target = ""] = /^<(.+)>; rel="next"$/.exec(answer.headers.link ?? "") ?? [];
  const next = Object.fromEntries(new URL(target).searchParams);
  assert.equal(next.cursor, answer.headers["audit-cursor"]);
  const second = await read(next, { accept: "text/csv" });
  assert.equal(second.text.split("\r\n").length, 3);
  assert.equal(second.headers.link, undefined);
});

test("PROD-6.3-3 checkpoints as CSV have a row each", async () => {
  const answer = await read({ limit: "1" }, { accept: "text/csv" }, "/audit/checkpoints");
  assert.match(answer.text, /^log,tree_size,checkpoint\r\ntest,\d+,[\w.-]+\r\n$/);
});

test("AUDIT-D-20 events as OCSF are a line each, with the stored text, and checkpoints have none", async () => {
  const stored = await read({}, { accept: "application/x-ndjson" });
  const answer = await read({}, { accept: "application/x-ocsf-ndjson" });
  assert.equal(answer.headers["content-type"], "application/x-ocsf-ndjson");
  const lines = answer.text.trimEnd().split("\n");
  const raw = lines.map((line) => JSON.parse(line).raw_data);
  assert.deepEqual(raw.slice(0, 20), stored.text.trimEnd().split("\n").slice(0, 20));
  const none = await read({}, { accept: "application/x-ocsf-ndjson" }, "/audit/checkpoints");
  assert.equal(none.status, 406);
});

for (const [what, accept] of [
  ["HTML", "text/html"],
  ["CSV with the weight zero", "text/csv;q=0"],
] as const) {
  test(`PROD-6.3-3 a request that accepts nothing but ${what} is refused with 406, and reads nothing`, async () => {
    const before = (await events({ type: "admin.access" })).length;
    for (const path of ["/audit/events", "/audit/checkpoints"]) {
      const answer = await read({}, { accept }, path);
      assert.deepEqual([answer.status, answer.body.error], [406, "invalid_request"]);
      assert.match(answer.text, /application\/json, application\/x-ndjson, text\/csv/);
    }
    // The first reading alone.
    assert.equal((await events({ type: "admin.access" })).length, before + 1);
  });
}

// --- export ---------------------------------------------------------------------------------------------------------

async function exported(path: string): Promise<string> {
  let text = "";
  let cursor: string | undefined;
  for (let more = true; more; ) {
    const answer = await read(
      { limit: "7", ...(cursor !== undefined && { cursor }) },
      { accept: NDJSON },
      path,
    );
    assert.equal(answer.headers["content-type"], NDJSON);
    text += answer.text;
    cursor = answer.headers["audit-cursor"];
    more = answer.headers.link !== undefined;
  }
  return text;
}

test("AUDIT-D-7, RFC9162-2.1.1-1 the bytes that were hashed are exported, and the verifier finds no error", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "mandate-export-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const save = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const jwks = save("jwks", (await read({}, {}, "/audit/checkpoints")).text);
  const witness = save("witness", readFileSync(join(world.folder, "witness"), "utf8"));
  const checkpoints = save("checkpoints", await exported("/audit/checkpoints"));
  const text = await exported("/audit/events");
  const lines = text.split("\n").slice(0, -1);
  let prev: string | undefined;
  for (const line of lines) {
    const event = JSON.parse(line);
    if (event.log !== "test") continue;
    if (prev !== undefined) assert.equal(event.prev, prev);
    prev = leafOf(event);
  }
  const verdict = await verifyAudit({ export: save("export", text), checkpoints, witness, jwks });
  assert.equal(verdict.code, 0, verdict.lines.join("\n"));
  assert.ok(readFileSync(checkpoints, "utf8").split("\n").length > 2);
  const cut = save("cut", lines.slice(0, 9).join("\n"));
  assert.equal((await verifyAudit({ export: cut, witness, jwks })).code, 1);
});

test("KEYS-D-1, PROD-6.3-3 checkpoints are returned with their public keys, which are not in /jwks", async () => {
  const answer = await read({}, {}, "/audit/checkpoints");
  assert.equal(answer.status, 200, answer.text);
  const keys = answer.body.keys as Query[];
  const jwks = (await world.get("/jwks")).body.keys as Query[];
  // The one that signs, and its successor.
  const shown = ["OKP", undefined];
  assert.deepEqual(
    keys.map(({ kty, d }) => [kty, d]),
    [shown, shown],
  );
  for (const { kid } of keys) assert.ok(jwks.every((key) => key.kid !== kid));
  const [first] = answer.body.checkpoints as Query[];
  assert.equal(first?.log, "test");
  const header = JSON.parse(
    Buffer.from(String(first?.checkpoint).split(".")[0] ?? "", "base64url").toString(),
  );
  const { kid, ...rest } = header;
  assert.deepEqual(rest, { alg: "EdDSA", typ: "audit-checkpoint+jwt" });
  assert.ok(keys.some((key) => key.kid === kid));
});

test("RFC8725-3.12-v1 a checkpoint is refused as an access token", async () => {
  const [first] = (await read({}, {}, "/audit/checkpoints")).body.checkpoints as Query[];
  const answer = await world.get("/audit/events", {
    headers: { authorization: `Bearer ${first?.checkpoint}` },
  });
  assert.equal(answer.status, 401);
});

test("RCPT-D-6, RCPT-D-10 a receipt is given to auditors, recorded, and to the client of the token; to others there is none", async () => {
  const other = await credentials("other", SECRET.toUpperCase(), "receipt:read");
  const get = (path: string, bearer?: string) =>
    world.get(path, bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } });
  const jti = String(claimsOf(other).jti);
  const logs = (await get("/audit/logs")).body.logs as { log: string; origin: string; keys: string[] }[];
  const keys = logs.find(({ log }) => log === "test")?.keys ?? [];
  const { verify, folder } = await loadVerifier();
  try {
    const path = `/audit/receipts/${jti}`;
    await until(async () => {
      // A client has a rate.
      await sleep(200);
      return (await get(path, other)).status === 200;
    }, "a checkpoint covers the token");
    const own = await get(path, other);
    assert.equal(own.headers["content-type"], "text/plain; charset=utf-8");
    const { token: shown, size } = verify(own.text, { keys });
    assert.equal(shown.jti, jti);
    assert.equal(shown.fp, hash.sha256(other.split(".", 2).join(".")));
    const note = await get("/audit/logs/test", token);
    assert.ok(Number(note.text.split("\n")[1]) >= size);
    const proof = await get(`/audit/consistency/test?from=1&to=${size}`, token);
    assert.equal(proof.status, 200, proof.text);
    for (const [there, bearer, status] of [
      [`/audit/receipts/${jtis[0]}`, token, 200],
      [`/audit/receipts/${jtis[0]}`, other, 404],
      ["/audit/receipts/none", token, 404],
      ["/audit/receipts/%ff", token, 404],
      [path, undefined, 401],
      ["/audit/logs/test", other, 403],
      ["/audit/logs/none", token, 404],
      ["/audit/consistency/test?from=0&to=1", token, 400],
      ["/audit/consistency/test?from=1&to=99999", token, 404],
      ["/audit/consistency/test?from=1&to=1", other, 403],
    ] as const)
      assert.equal((await get(there, bearer)).status, status, there);
  } finally {
    forget(folder);
  }
  const looks = (await world.events()).filter(
    ({ detail }) => detail !== undefined && "receipt" in Object(detail),
  );
  assert.deepEqual(
    looks.map(({ detail }) => detail),
    [{ receipt: jtis[0] }],
  );
});
