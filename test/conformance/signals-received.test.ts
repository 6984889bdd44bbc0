/** POST /signals/NAME: what a security event of a trusted issuer ends, and what is refused or set aside. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { basic } from "../../scripts/http-client.ts";
import { endingEntry, isDisabled } from "../../src/flows/endings.ts";
import { SIGNALS_AT_ONCE } from "../../src/limits/signals.ts";
import { foreignKeys } from "../../src/policy/endings.ts";
import type { Ports } from "../../src/ports.ts";
import { err } from "../../src/result.ts";
import { forge, makeKey } from "../support/forge.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { claimsOf, EXCHANGE, ISSUER, JWT, type Service, workload } from "../support/world.ts";

const CORP = "https://corp.example";
const OTHER = "https://other.example";
const GOOGLE = "https://accounts.google.com";
const SECRET = "signals-received-1234567890-abcdef";
const AUTHORIZATION = "Bearer pushes-of-corp";
const CAEP = "https://schemas.openid.net/secevent/caep/event-type";
const RISC = "https://schemas.openid.net/secevent/risc/event-type";
const SSF = "https://schemas.openid.net/secevent/ssf/event-type";
const planner = workload("planner");
const scopes = ["trips.read"];
const corp = makeKey("ES256", "corp-1");
const other = makeKey("ES256", "other-1");

let service: Service & Awaited<ReturnType<typeof makeService>>;
before(async () => {
  const issuer = (file: string, prefix: string, name: string) => ({
    ...{ keys: { file }, subjects: { prefix }, acceptAs: ["jwt"], jobs: true },
    signals: {
      name,
      ...(name === "corp" && { authorization: AUTHORIZATION, criticalSubjectMembers: ["application"] }),
    },
  });
  service = await makeService(
    {
      trustedIssuers: {
        [CORP]: issuer("corp.json", "corp-", "corp"),
        [OTHER]: issuer("other.json", "other-", "other"),
        [GOOGLE]: {
          ...issuer("corp.json", "google-", "google"),
          signals: { name: "google", issuer: `${GOOGLE}/` },
        },
      },
      clients: { gate: { method: "client_secret_basic", secrets: [SECRET] } },
      targets: [{ names: ["booking"], introspectors: ["gate"], scopes }],
      policies: [
        {
          ...{ id: "agents", allow: "impersonation", actors: [planner], targets: ["booking"], scopes },
          ...{ subjects: { issuers: [CORP, OTHER, GOOGLE] }, subjectToken: { audiences: [ISSUER] } },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
    },
    {
      files: {
        "corp.json": JSON.stringify({ keys: [corp.jwk] }),
        "other.json": JSON.stringify({ keys: [other.jwk] }),
      },
    },
  );
});
after(() => stop(service));

const now = (): number => Math.floor(Date.now() / 1000);

type Named = {
  iss?: string;
  key?: typeof corp;
  sub?: string;
  iat?: number;
  jti?: string;
  sid?: string;
  job?: string;
};

function userToken({
  iss = CORP,
  key = corp,
  sub = "alice",
  iat = now(),
  jti = randomUUID(),
  sid,
  job,
}: Named = {}) {
  const claims = { iss, sub, aud: ISSUER, iat, exp: now() + 600, jti, sid, scope: "trips.read" };
  return forge(key, job === undefined ? claims : { ...claims, mandate_job: { id: job, exp: now() + 600 } });
}

async function tokenFor(named: Named = {}): Promise<string> {
  const svid = await service.svid("planner");
  const { status, body, text } = await service.token({
    ...{ grant_type: EXCHANGE, subject_token: userToken(named), subject_token_type: JWT },
    ...{ audience: "booking", scope: "trips.read" },
    ...service.as(svid),
  });
  assert.equal(status, 200, text);
  return String(body.access_token);
}

async function isActive(token: string): Promise<boolean> {
  const form = new URLSearchParams({ token });
  const { body } = await service.get("/introspect", {
    ...{ method: "POST", body: String(form) },
    headers: { authorization: basic("gate", SECRET), "content-type": "application/x-www-form-urlencoded" },
  });
  return body.active === true;
}

const eventOf = (type: string, subject: object, claims: object = {}, payload: object = {}) => ({
  ...{ iss: CORP, aud: ISSUER, iat: now(), jti: randomUUID(), sub_id: subject },
  events: { [type]: { event_timestamp: now(), ...payload } },
  ...claims,
});
const user = (sub = "alice", iss = CORP) => ({ format: "iss_sub", iss, sub });
const REVOKED = `${CAEP}/session-revoked`;

type Pushed = { key?: typeof corp; header?: object; headers?: Record<string, string>; name?: string };

function push(
  claims: object | string,
  { key = corp, header = {}, headers = {}, name = "corp" }: Pushed = {},
) {
  const body =
    typeof claims === "string" ? claims : forge(key, claims, { header: { typ: "secevent+jwt", ...header } });
  const usual = { "content-type": "application/secevent+jwt", authorization: AUTHORIZATION };
  return service.get(`/signals/${name}`, { method: "POST", headers: { ...usual, ...headers }, body });
}

const lastEvent = async () =>
  (await service.events()).findLast(({ type }) => type.startsWith("signal.") || type.startsWith("subject."));

const ENDING: Record<string, (sub: string) => object> = {
  "session-revoked": (sub) => eventOf(REVOKED, user(sub)),
  "credential-change": (sub) =>
    eventOf(`${CAEP}/credential-change`, user(sub), {}, { change_type: "revoke" }),
  "sessions-revoked of RISC": (sub) => eventOf(`${RISC}/sessions-revoked`, user(sub)),
  "account-disabled": (sub) => eventOf(`${RISC}/account-disabled`, user(sub)),
  "account-purged": (sub) => eventOf(`${RISC}/account-purged`, user(sub)),
  "session-revoked with a member of another event": (sub) =>
    eventOf(REVOKED, user(sub), {}, { change_type: "create" }),
  "an event about a complex subject": (sub) => eventOf(REVOKED, { format: "complex", user: user(sub) }),
  "an event about all sessions, as Keycloak names them": (sub) =>
    eventOf(REVOKED, {
      ...{ format: "complex", user: user(sub) },
      session: { format: "opaque", id: "ALL" },
    }),
  "an event about the user with a device": (sub) =>
    eventOf(REVOKED, { format: "complex", user: user(sub), device: { format: "opaque", id: "d1" } }),
  "an event of the shape of Okta, with a bare user inside it": (sub) =>
    eventOf(
      REVOKED,
      {},
      { sub_id: undefined },
      {
        ...{ subject: { user: user(sub) }, initiating_entity: "admin", reason_admin: { en: "cleared" } },
        current_ip_address: "192.0.2.1",
      },
    ),
  "an event of the shape of Entra, with tenant and device beside the user": (sub) =>
    eventOf(REVOKED, {
      ...{ format: "complex", user: user(sub), tenant: { format: "opaque", id: "t-1" } },
      device: { format: "opaque", id: "d-1" },
    }),
  "an event with its subject where RISC has it": (sub) =>
    eventOf(REVOKED, {}, { sub_id: undefined }, { subject: { subject_type: "iss-sub", iss: CORP, sub } }),
};
for (const [name, make] of Object.entries(ENDING)) {
  test(`SSF-D-6, RFC8935-2-2, PCL-D-13, PCL-D-14 ${name} ends the tokens of its subject, and no others`, async () => {
    const sub = randomUUID();
    const [hers, his, theirs] = [
      await tokenFor({ sub, iat: now() - 30 }),
      await tokenFor({ sub: "bob" }),
      await tokenFor({ iss: OTHER, key: other, sub }),
    ];
    const answer = await push(make(sub));
    assert.deepEqual([answer.status, answer.text], [202, ""]);
    assert.deepEqual(
      [await isActive(hers), await isActive(his), await isActive(theirs)],
      [false, true, true],
    );
    const event = await lastEvent();
    assert.deepEqual([event?.type, event?.reason], ["signal.received", "by_issuer"]);
  });
}

test("SSF-D-8, POLICY-D-20 an account that its issuer disabled is kept out until it is enabled, and no older event enables it", async () => {
  const sub = randomUUID();
  assert.equal(await isRefused(sub), false);
  assert.equal((await push(eventOf(`${RISC}/account-disabled`, user(sub)))).status, 202);
  assert.deepEqual([await isRefused(sub), await isRefused(sub, now() + 20)], [true, true]);
  const enable = (seconds: number) =>
    push(eventOf(`${RISC}/account-enabled`, user(sub), {}, { event_timestamp: seconds }));
  assert.equal((await enable(now() - 60)).status, 202);
  assert.equal(await isRefused(sub, now() + 20), true);
  assert.equal((await enable(now())).status, 202);
  // Times in tokens are whole seconds, and what began in that of the event stays ended.
  await until(async () => !(await isRefused(sub, now() + 20)), "the next second");
  assert.equal(await isRefused(sub, now() - 20), true);
  assert.equal(
    (await service.events()).findLast(({ type }) => type === "subject.enabled")?.reason,
    "by_issuer",
  );
});

/** Whether a token of the user that begins then gets nothing. */
async function isRefused(sub: string, iat = now()): Promise<boolean> {
  const { status } = await service.token({
    ...{ grant_type: EXCHANGE, subject_token: userToken({ sub, iat }), subject_token_type: JWT },
    ...{ audience: "booking", scope: "trips.read" },
    ...service.as(await service.svid("planner")),
  });
  return status === 400;
}

test("SSF-D-6, PCL-D-14 an event of the shape of Google, whose iss ends with a slash, keeps out the subject of its tokens", async () => {
  const sub = "108000000000000000001";
  const [token, ofCorp] = [await tokenFor({ iss: GOOGLE, sub }), await tokenFor({ sub })];
  const iss = `${GOOGLE}/`;
  const subject = { subject_type: "iss-sub", iss, sub };
  const claims = {
    ...{ iss, aud: ISSUER, iat: now(), jti: randomUUID() },
    events: { [`${RISC}/account-disabled`]: { subject, reason: "hijacking" } },
  };
  assert.equal((await push(claims, { name: "google" })).status, 202);
  assert.deepEqual([await isActive(token), await isActive(ofCorp)], [false, true]);
  assert.equal(await isDisabled(service.ports, { iss: GOOGLE, sub }), true);
  // What it writes in its tokens is no issuer of events, and no other issuer writes so.
  const own = { ...claims, iss: GOOGLE, jti: randomUUID() };
  assert.equal((await push(own, { name: "google" })).body.err, "invalid_issuer");
  assert.equal((await push({ ...claims, jti: randomUUID() })).body.err, "invalid_issuer");
});

const ORDERS: Record<string, [first: [string, number], second: [string, number], out: boolean]> = {
  "disabled, then enabled": [["account-disabled", 60], ["account-enabled", 58], false],
  "enabled, then disabled": [["account-enabled", 60], ["account-disabled", 58], true],
  "purged, then enabled": [["account-purged", 60], ["account-enabled", 58], false],
};
for (const [name, [first, second, isOut]] of Object.entries(ORDERS)) {
  for (const order of [
    [first, second],
    [second, first],
  ]) {
    const [[early = ""] = []] = order;
    test(`SSF-D-12 of an account that was ${name} the younger event decides, where ${early} comes first`, async () => {
      const sub = randomUUID();
      const token = await tokenFor({ sub, iat: now() - 70 });
      for (const [type, ago] of order) {
        const claims = eventOf(`${RISC}/${type}`, user(sub), {}, { event_timestamp: now() - ago });
        assert.equal((await push(claims)).status, 202);
      }
      // Times in tokens are whole seconds, and what began in that of the enabling stays ended.
      await until(async () => (await isRefused(sub, now() + 20)) === isOut, "the next second");
      assert.equal(await isActive(token), false);
    });
  }
}

test("SSF-D-12 an older event is set aside with its reason, and an older disabling ends what began up to its time alone", async () => {
  const sub = randomUUID();
  const at = (ago: number) => ({ event_timestamp: now() - ago });
  await push(eventOf(`${RISC}/account-disabled`, user(sub), {}, at(60)));
  await push(eventOf(`${RISC}/account-enabled`, user(sub), {}, at(70)));
  const event = await lastEvent();
  assert.deepEqual([event?.type, event?.reason], ["signal.ignored", "event_superseded"]);
  assert.equal(await isRefused(sub), true);
  const other = randomUUID();
  await push(eventOf(`${RISC}/account-enabled`, user(other), {}, at(60)));
  const [older, younger] = [
    await tokenFor({ sub: other, iat: now() - 80 }),
    await tokenFor({ sub: other, iat: now() - 20 }),
  ];
  await push(eventOf(`${RISC}/account-disabled`, user(other), {}, at(70)));
  assert.deepEqual([await isActive(older), await isActive(younger)], [false, true]);
});

test("SSF-D-12 an event of an issuer that is older than the disabling by an operator does not enable", async () => {
  const sub = randomUUID();
  await service.ports.journal.record(
    endingEntry(service.ports, { by: "subject", iss: CORP, sub, disabled: true }, { reason: "by_operator" }),
  );
  await push(eventOf(`${RISC}/account-enabled`, user(sub), {}, { event_timestamp: now() - 5 }));
  assert.equal(await isRefused(sub, now() + 20), true);
});

test("SSF-D-8 an account that its issuer disabled is kept out tomorrow too, beyond what an ending up to now reaches", async () => {
  const origin = { iss: CORP, sub: randomUUID() };
  const isOutTomorrow = () => {
    const { hash, endings } = service.ports;
    return endings.isEnded(foreignKeys(hash.sha256, origin, now() + 86_400));
  };
  await push(eventOf(REVOKED, user(origin.sub)));
  assert.equal(await isOutTomorrow(), false);
  await push(eventOf(`${RISC}/account-disabled`, user(origin.sub)));
  assert.equal(await isOutTomorrow(), true);
});

test("CAEP-3.1-2 an event ends what began up to its time, and not what began after it", async () => {
  const before = await tokenFor({ sub: "carol", iat: now() - 120 });
  const later = await tokenFor({ sub: "carol", iat: now() - 20 });
  const claims = eventOf(REVOKED, user("carol"), {}, { event_timestamp: now() - 60 });
  assert.equal((await push(claims)).status, 202);
  assert.deepEqual([await isActive(before), await isActive(later)], [false, true]);
});

test("an event with a time of the future, or in milliseconds, ends what there is and nothing that comes later", async () => {
  const token = await tokenFor({ sub: "dora", iat: now() - 60 });
  const claims = eventOf(REVOKED, user("dora"), { iat: now() - 10 }, { event_timestamp: Date.now() });
  assert.equal((await push(claims)).status, 202);
  assert.equal(await isActive(token), false);
  assert.equal(await isActive(await tokenFor({ sub: "dora" })), true);
});

test("SSF-4.2-2 members that are not known, of the claims, the event and its subject, change nothing", async () => {
  const token = await tokenFor({ sub: "ines", iat: now() - 30 });
  const subject = { ...user("ines"), nickname: "i", device: { format: "opaque", id: "d" } };
  const claims = eventOf(REVOKED, subject, { toe: now(), urn: {} }, { tenant: "t", reason_user: { xx: [] } });
  assert.equal((await push(claims)).status, 202);
  assert.equal((await lastEvent())?.type, "signal.received");
  assert.equal(await isActive(token), false);
});

test("SSF-D-6 a single token that its issuer takes back ends with what came of it", async () => {
  const jti = randomUUID();
  const [gone, stays] = [await tokenFor({ sub: "eve", jti }), await tokenFor({ sub: "eve" })];
  assert.equal((await push(eventOf(REVOKED, { format: "jwt_id", iss: CORP, jti }))).status, 202);
  assert.deepEqual([await isActive(gone), await isActive(stays)], [false, true]);
});

test("CAEP-3.1-2 a session ends with what came of its tokens, and with what is presented of it later", async () => {
  const sid = randomUUID();
  const [gone, stays, theirs] = [
    await tokenFor({ sub: "gina", sid }),
    await tokenFor({ sub: "gina", sid: randomUUID() }),
    await tokenFor({ sub: "gina", sid, iss: OTHER, key: other }),
  ];
  const subject = { format: "complex", user: user("gina"), session: { format: "opaque", id: sid } };
  assert.equal((await push(eventOf(REVOKED, subject))).status, 202);
  assert.deepEqual(
    [await isActive(gone), await isActive(stays), await isActive(theirs)],
    [false, true, true],
  );
  await assert.rejects(tokenFor({ sub: "gina", sid, iat: now() + 20 }), /invalid_request/);
});

test("JOB-D-19 a job of the issuer ends as one, also what is redeemed of it later, and no job of another issuer", async () => {
  const job = `job_${randomUUID()}`;
  const [gone, stays, theirs] = [
    await tokenFor({ job }),
    await tokenFor({ job: `${job}x` }),
    await tokenFor({ iss: OTHER, key: other, job }),
  ];
  const subject = { format: "complex", session: { format: "opaque", id: job } };
  assert.equal((await push(eventOf(REVOKED, subject))).status, 202);
  assert.deepEqual(
    [await isActive(gone), await isActive(stays), await isActive(theirs)],
    [false, true, true],
  );
  const svid = await service.svid("planner");
  const later = await service.token({
    ...{ grant_type: EXCHANGE, subject_token: userToken({ job }), subject_token_type: JWT },
    ...{ audience: "booking", scope: "trips.read" },
    ...service.as(svid),
  });
  assert.equal(later.body.error, "invalid_request", later.text);
});

test("RFC8935-2-3 an event that comes again is answered as the first was, and changes nothing", async () => {
  const claims = eventOf(REVOKED, user("frank"));
  assert.equal((await push(claims)).status, 202);
  const count = (await service.events()).length;
  assert.equal((await push(claims)).status, 202);
  assert.equal((await service.events()).length, count);
});

test("SSF-8.1.4-1 a test of the stream is taken, and no event is on record of it", async () => {
  const count = (await service.events()).length;
  const claims = eventOf(`${SSF}/verification`, { format: "opaque", id: "stream-1" }, {}, { state: "x" });
  assert.equal((await push(claims)).status, 202);
  assert.equal((await service.events()).length, count);
});

const IGNORED: Record<string, [claims: object, reason: string]> = {
  "an event of an unknown type": [eventOf(`${CAEP}/device-compliance-change`, user()), "event_unknown"],
  "an event named __proto__": [eventOf("__proto__x", user()), "event_unknown"],
  "a credential that is new": [
    eventOf(`${CAEP}/credential-change`, user(), {}, { change_type: "create" }),
    "event_ends_nothing",
  ],
  "the subject of another issuer": [eventOf(REVOKED, user("alice", OTHER)), "event_subject_foreign"],
  "a token of another issuer": [
    eventOf(REVOKED, { format: "jwt_id", iss: OTHER, jti: "x" }),
    "event_subject_foreign",
  ],
  "a token of ours": [eventOf(REVOKED, { format: "jwt_id", iss: ISSUER, jti: "x" }), "event_subject_foreign"],
  "an issuer with a slash more": [eventOf(REVOKED, user("alice", `${CORP}/`)), "event_subject_foreign"],
  "an e-mail address": [
    eventOf(REVOKED, { format: "email", email: "alice@corp.example" }),
    "event_subject_unsupported",
  ],
  "a job that is disabled": [
    eventOf(`${RISC}/account-disabled`, { format: "complex", session: { format: "opaque", id: "j" } }),
    "event_subject_unsupported",
  ],
  "a device of the user that is enabled": [
    eventOf(`${RISC}/account-enabled`, {
      ...{ format: "complex", user: user() },
      device: { format: "opaque", id: "d" },
    }),
    "event_subject_unsupported",
  ],
  "a user in a member that its transmitter calls critical": [
    eventOf(REVOKED, { format: "complex", user: user(), application: { format: "opaque", id: "a" } }),
    "event_subject_critical",
  ],
  "a user of another issuer with a device": [
    eventOf(REVOKED, {
      ...{ format: "complex", user: user("alice", OTHER) },
      device: { format: "opaque", id: "d" },
    }),
    "event_subject_foreign",
  ],
  "a complex subject in another": [
    eventOf(REVOKED, { format: "complex", user: { format: "complex", user: user() } }),
    "event_subject_unsupported",
  ],
  "a device alone": [
    eventOf(REVOKED, { format: "complex", device: { format: "opaque", id: "d" } }),
    "event_subject_unsupported",
  ],
  "a group of a directory": [
    eventOf("urn:ietf:params:scim:event:prov:deactivate", { format: "scim", uri: "/Users/44f6142" }),
    "event_unknown",
  ],
  "a user without an issuer": [
    eventOf(REVOKED, { format: "iss_sub", issuer: CORP, sub: "alice" }),
    "event_subject_unsupported",
  ],
  "a sub that is no text": [
    eventOf(REVOKED, { format: "iss_sub", iss: CORP, sub: ["alice"] }),
    "event_subject_unsupported",
  ],
  "one token that is enabled": [
    eventOf(`${RISC}/account-enabled`, { format: "jwt_id", iss: CORP, jti: "x" }),
    "event_subject_unsupported",
  ],
  "one session that is enabled": [
    eventOf(`${RISC}/account-enabled`, {
      ...{ format: "complex", user: user() },
      session: { format: "opaque", id: "s" },
    }),
    "event_subject_unsupported",
  ],
  "no subject": [eventOf(REVOKED, {}, { sub_id: undefined }), "event_subject_unsupported"],
};
for (const [name, [claims, reason]] of Object.entries(IGNORED)) {
  const isRefusedAs = reason === "event_subject_unsupported";
  test(`SSF-3.6-1, SSF-D-6, PCL-D-16, PCL-D-17 an event about ${name} ends nothing and has its reason in the trail, ${isRefusedAs ? "and is refused" : "and is taken"}`, async () => {
    const [hers, theirs] = [await tokenFor({ sub: "alice" }), await tokenFor({ iss: OTHER, key: other })];
    const { status, body } = await push({ ...claims, jti: randomUUID() });
    assert.deepEqual([status, body.err], isRefusedAs ? [400, "invalid_request"] : [202, undefined]);
    const event = await lastEvent();
    assert.deepEqual([event?.type, event?.reason], ["signal.ignored", reason]);
    assert.deepEqual([await isActive(hers), await isActive(theirs)], [true, true]);
  });
}

type Refused = () => [pushed: ReturnType<typeof push>, status: number, err?: string];
const REFUSED: Record<string, Refused> = {
  "a signature by another key": () => [
    push(eventOf(REVOKED, user()), { key: { ...corp, privateKey: other.privateKey } }),
    400,
    "invalid_key",
  ],
  "an unknown key": () => [push(eventOf(REVOKED, user()), { key: other }), 400, "invalid_key"],
  "no signature": () => [push(eventOf(REVOKED, user()), { header: { alg: "none" } }), 400, "invalid_key"],
  "another issuer": () => [push(eventOf(REVOKED, user(), { iss: OTHER })), 400, "invalid_issuer"],
  "the events of another issuer at its name": () => [
    push(eventOf(REVOKED, user("alice", OTHER), { iss: OTHER }), { key: other }),
    400,
    "invalid_issuer",
  ],
  "another audience": () => [
    push(eventOf(REVOKED, user(), { aud: "https://elsewhere.example" })),
    400,
    "invalid_audience",
  ],
  "no type": () => [push(eventOf(REVOKED, user()), { header: { typ: undefined } }), 400, "invalid_request"],
  "the type of a logout token": () => [
    push(eventOf(REVOKED, user()), { header: { typ: "logout+jwt" } }),
    400,
    "invalid_request",
  ],
  "an iat of the future": () => [
    push(eventOf(REVOKED, user(), { iat: now() + 3600 })),
    400,
    "invalid_request",
  ],
  "an iat of two years ago": () => [
    push(eventOf(REVOKED, user(), { iat: now() - 2 * 365 * 24 * 3600 })),
    400,
    "invalid_request",
  ],
  "an nbf of tomorrow": () => [
    push(eventOf(REVOKED, user(), { nbf: now() + 86_400 })),
    400,
    "invalid_request",
  ],
  "an nbf that is no number": () => [push(eventOf(REVOKED, user(), { nbf: "0" })), 400, "invalid_request"],
  "no jti": () => [push(eventOf(REVOKED, user(), { jti: undefined })), 400, "invalid_request"],
  "two events": () => [
    push(eventOf(REVOKED, user(), { events: { [REVOKED]: {}, [`${RISC}/account-disabled`]: {} } })),
    400,
    "invalid_request",
  ],
  "no event": () => [push(eventOf(REVOKED, user(), { events: {} })), 400, "invalid_request"],
  "an event that is a text": () => [
    push(eventOf(REVOKED, user(), { events: { [REVOKED]: "x" } })),
    400,
    "invalid_request",
  ],
  "a text that is no JWT": () => [push("not a jwt"), 400, "invalid_request"],
  "20 KiB": () => [push("a".repeat(20_000)), 400, "invalid_request"],
  "another media type": () => [
    push(eventOf(REVOKED, user()), { headers: { "content-type": "application/json" } }),
    415,
  ],
  "a wrong authorization": () => [
    push(eventOf(REVOKED, user()), { headers: { authorization: "Bearer x" } }),
    401,
    "authentication_failed",
  ],
  "the shape of Apple's notifications": () => [
    push(
      JSON.stringify({
        payload: forge(
          corp,
          eventOf(REVOKED, user(), { events: JSON.stringify({ type: "consent-revoked" }) }),
        ),
      }),
      { headers: { "content-type": "application/json" } },
    ),
    415,
  ],
  "an unknown name": () => [push(eventOf(REVOKED, user()), { name: "nobody" }), 404],
};
async function assertRefused(make: Refused): Promise<void> {
  const token = await tokenFor({ sub: "alice" });
  const count = (await service.events()).length;
  const [pushed, status, err] = make();
  const answer = await pushed;
  assert.deepEqual([answer.status, answer.body.err], [status, err], answer.text);
  assert.equal(await isActive(token), true);
  const types = (await service.events()).slice(count).map(({ type }) => type);
  assert.equal(
    types.some((type) => type.startsWith("signal.")),
    false,
  );
}
for (const [name, make] of Object.entries(REFUSED)) {
  test(`RFC8417-2.3-1, RFC8935-2.4-1 an event with ${name} is refused, and ends nothing`, () =>
    assertRefused(make));
}

for (const claims of [{ sub: "alice" }, { exp: now() + 60 }]) {
  test(`RFC8417-4-1, SSF-4-3 an event with the ${Object.keys(claims)} of an ID token is refused, and ends nothing`, () =>
    assertRefused(() => [push(eventOf(REVOKED, user(), claims)), 400, "invalid_request"]));
}

test("RFC8417-4.2-1 a security event is no subject token", async () => {
  const claims = { ...eventOf(REVOKED, user()), sub: "alice", exp: now() + 60, scope: "trips.read" };
  const set = forge(corp, claims, { header: { typ: "secevent+jwt" } });
  const { status, body } = await service.token({
    ...{ grant_type: EXCHANGE, subject_token: set, subject_token_type: JWT, audience: "booking" },
    ...service.as(await service.svid("planner")),
  });
  assert.deepEqual([status, body.error], [400, "invalid_request"]);
  assert.equal(claimsOf(set).sub, "alice");
});

test("PROD-6.4-1, SSF-7.2-1 without streams there are no metadata of a transmitter", async () => {
  assert.equal((await service.get("/.well-known/ssf-configuration")).status, 404);
});

/** A server of its own, to which `issuer` pushes an event that `key` signed. */
async function withIssuers(limits: object, work: (own: Pushing) => Promise<void>): Promise<void> {
  const trusted = (file: string, name: string) => ({
    ...{ keys: { file }, subjects: { prefix: `${name}-` }, acceptAs: [], signals: { name } },
  });
  const own = await makeService(
    {
      limits,
      clients: { gate: { method: "client_secret_basic", secrets: [SECRET] } },
      targets: [{ names: ["booking"], introspectors: ["gate"], scopes }],
      trustedIssuers: { [CORP]: trusted("corp.json", "corp"), [OTHER]: trusted("other.json", "other") },
    },
    {
      files: {
        "corp.json": JSON.stringify({ keys: [corp.jwk] }),
        "other.json": JSON.stringify({ keys: [other.jwk] }),
      },
    },
  );
  const send: Pushing["send"] = async (iss, key) => {
    const [name, { kid }] = iss === CORP ? ["corp", corp] : ["other", other];
    const claims = eventOf(`${SSF}/verification`, { format: "opaque", id: name }, { iss });
    const body = forge({ ...key, kid }, claims, { header: { typ: "secevent+jwt" } });
    const headers = { "content-type": "application/secevent+jwt" };
    return (await own.get(`/signals/${name}`, { method: "POST", headers, body })).status;
  };
  const introspect = async () => {
    const headers = {
      authorization: basic("gate", SECRET),
      "content-type": "application/x-www-form-urlencoded",
    };
    return (await own.get("/introspect", { method: "POST", body: "token=x", headers })).status;
  };
  await work({ send, introspect }).finally(own.stop);
}

type Pushing = {
  send(iss: string, key: typeof corp): Promise<number>;
  introspect(): Promise<number>;
};

test("PROD-8.3-1, SSF-D-10 forged events use up nothing of their issuer's rate, and are told to wait", () =>
  withIssuers({ failuresPerMinuteBySource: 3 }, async ({ send }) => {
    const forged: number[] = [];
    for (let sent = 0; sent < 6; sent++) forged.push(await send(CORP, other));
    assert.deepEqual(forged, [400, 400, 400, 429, 429, 429]);
    assert.equal(await send(CORP, corp), 202);
  }));

test("SSF-D-10 an issuer that sends more events than it may is told to wait, and no other issuer or client is", () =>
  withIssuers({ requestsPerSecondByClient: 1 }, async ({ send, introspect }) => {
    const flood: number[] = [];
    // They come faster than the rate, which lets 100 more pass in each second.
    while (!flood.includes(429) && flood.length < 5_000)
      flood.push(...(await Promise.all(Array.from({ length: 50 }, () => send(CORP, corp)))));
    assert.deepEqual(new Set(flood), new Set([202, 429]));
    assert.ok(flood.indexOf(429) >= SIGNALS_AT_ONCE);
    assert.deepEqual([await send(OTHER, other), await introspect()], [202, 200]);
  }));

test("SSF-D-10 the signature of an event is not verified while its issuer sends too many", () =>
  withIssuers({ requestsPerSecondByClient: 1, failuresPerMinuteBySource: 10_000 }, async ({ send }) => {
    const forged = [await send(CORP, other)];
    // In the ten milliseconds after a batch that used up the rate, one more event waits.
    while (!forged.includes(429) && forged.length < 200) {
      await Promise.all(Array.from({ length: 50 }, () => send(CORP, corp)));
      forged.push(await send(CORP, other));
    }
    assert.equal(forged[0], 400);
    assert.equal(forged.at(-1), 429);
  }));

test("SSF-D-9 an event that disables or enables is remembered for as long as any is taken, and one that ends for a day", async () => {
  const kept: number[] = [];
  await withPorts(
    ({ journal }) => ({
      journal: {
        record(entry, deadline) {
          for (const guard of entry.guards ?? []) {
            if ("expiresAtSeconds" in guard) kept.push(Math.round((guard.expiresAtSeconds - now()) / 86_400));
          }
          return journal.record(entry, deadline);
        },
      },
    }),
    async ({ send }) => {
      for (const type of [REVOKED, `${RISC}/account-disabled`, `${RISC}/account-enabled`])
        assert.equal((await send(eventOf(type, user()))).status, 202);
      assert.deepEqual(kept, [1, 400, 400]);
    },
  );
});

for (const [first, second] of [
  ["account-enabled", "account-disabled"],
  ["account-disabled", "account-enabled"],
] as const) {
  test(`SSF-D-12 where ${second} is recorded beside ${first}, which its condition does not see, the younger still decides`, async () => {
    const at = { "account-enabled": now() - 10, "account-disabled": now() - 20 };
    let isBlind = false;
    let looks = 0;
    await withPorts(
      ({ journal, clock }) => ({
        // Each look at the clock is a millisecond later.
        clock: { ...clock, nowMs: () => clock.nowMs() + looks++ },
        journal: {
          // As two statements that see the same snapshot: the second has neither condition nor effect on the first.
          record: ({ lift, guards = [], ...entry }, deadline) => {
            const isAfter = isBlind;
            isBlind = false;
            const seen = isAfter ? guards.filter(({ kind }) => kind !== "not_ended") : guards;
            return journal.record(
              { ...entry, guards: seen, ...(!isAfter && lift !== undefined && { lift }) },
              deadline,
            );
          },
        },
      }),
      async ({ send, own }) => {
        for (const type of [first, second]) {
          isBlind = type === second;
          const claims = eventOf(`${RISC}/${type}`, user(), {}, { event_timestamp: at[type] });
          assert.equal((await send(claims)).status, 202);
        }
        assert.equal(await isDisabled(own.ports, { iss: CORP, sub: "alice" }), false);
      },
    );
  });
}

test("SSF-D-10, PROD-8.3-1 while the CPU time for verifications is used up, an event is to be sent again later", () => {
  const full = err({ reason: "proofs_too_many", retrySeconds: 7 } as const);
  return withPorts(
    () => ({ proofs: { verify: async () => full } }),
    async ({ send }) => {
      const { status, headers, body } = await send(eventOf(REVOKED, user()));
      assert.deepEqual([status, headers["retry-after"], body.err], [503, "7", "access_denied"]);
    },
  );
});

type Own = Awaited<ReturnType<typeof makeService>>;
type Sending = { own: Own; send(claims: object): ReturnType<Own["get"]> };

/** A server of its own, with other ports, to which one issuer pushes. */
async function withPorts(
  ports: (usual: Ports) => Partial<Ports>,
  work: (sending: Sending) => Promise<void>,
): Promise<void> {
  const own = await makeService(
    {
      trustedIssuers: {
        [CORP]: { keys: { file: "corp.json" }, subjects: "keep", acceptAs: [], signals: { name: "corp" } },
      },
    },
    { files: { "corp.json": JSON.stringify({ keys: [corp.jwk] }) }, ports },
  );
  const send: Sending["send"] = (claims) => {
    const body = forge(corp, claims, { header: { typ: "secevent+jwt" } });
    const headers = { "content-type": "application/secevent+jwt" };
    return own.get("/signals/corp", { method: "POST", headers, body });
  };
  await work({ own, send }).finally(own.stop);
}
