/** POST /signals/NAME: events that name their user by e-mail address, and what they end. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { basic, encodeForm } from "../../scripts/http-client.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { termsOf } from "../../src/audit/terms.ts";
import { EMAIL_SUBJECTS_MAX } from "../../src/limits/signals.ts";
import { emailDigest } from "../../src/policy/endings.ts";
import { forge, makeKey, seconds as now } from "../support/forge.ts";
import { AS_WEB, Browser, files, forPeople, redeem, request, verifierOf } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { EXCHANGE, ISSUER, JWT, workload } from "../support/world.ts";

const CORP = "https://corp.example";
const OTHER = "https://other.example";
const LOOSE = "https://loose.example";
const CLOSED = "https://closed.example";
const SECRET = "signals-email-1234567890-abcdefghij";
const REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const DISABLED = "https://schemas.openid.net/secevent/risc/event-type/account-disabled";
const ENABLED = "https://schemas.openid.net/secevent/risc/event-type/account-enabled";
const CHANGED = "https://schemas.openid.net/secevent/caep/event-type/token-claims-change";
const planner = workload("planner");
const scopes = ["trips.read"];
const key = makeKey("ES256", "corp-1");

let provider: TestProvider;
let service: Awaited<ReturnType<typeof makeService>>;
before(async () => {
  provider = await startProvider();
  const people = forPeople(provider);
  const issuer = (name: string, signals: object) => ({
    ...{ keys: { file: "corp.json" }, subjects: { prefix: `${name}-` }, acceptAs: ["jwt"] },
    signals: { name, ...signals },
  });
  service = await makeService(
    {
      ...people,
      trustedIssuers: {
        ...provider.trusted({ signals: { name: "provider", email: "/email" } }),
        [CORP]: issuer("corp", { email: "/contact/mail" }),
        [OTHER]: issuer("other", { email: "/contact/mail" }),
        [LOOSE]: issuer("loose", { email: "/contact/mail", unverifiedEmail: true }),
        [CLOSED]: issuer("closed", {}),
      },
      clients: {
        ...people.clients,
        gate: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [...people.targets, { names: ["booking"], introspectors: ["gate"], scopes }],
      policies: [
        ...people.policies.map((rule) => ({ ...rule, refresh: true })),
        {
          ...{ id: "agents", allow: "impersonation", actors: [planner], targets: ["booking"], scopes },
          subjects: { issuers: [CORP, OTHER, LOOSE, CLOSED] },
          ...{ subjectToken: { audiences: [ISSUER] } },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
    },
    { files: { ...files(provider), "corp.json": JSON.stringify({ keys: [key.jwk] }) } },
  );
});
after(() => stop(service, provider));

type User = {
  iss?: string;
  sub?: string | undefined;
  mail?: unknown;
  verified?: unknown;
  iat?: number;
  sid?: string;
};

/** A token that the planner gets for this user. */
async function tokenFor({ iss = CORP, sub = randomUUID(), mail, verified = true, iat, sid }: User) {
  const at = iat ?? now() - 30;
  const its = { contact: { mail }, email_verified: verified, sid, jti: randomUUID(), scope: "trips.read" };
  const subject_token = forge(key, { iss, sub, aud: ISSUER, iat: at, exp: now() + 600, ...its });
  const { status, body, text } = await service.token({
    ...{ grant_type: EXCHANGE, subject_token, subject_token_type: JWT },
    ...{ audience: "booking", scope: "trips.read" },
    ...service.as(await service.svid("planner")),
  });
  assert.equal(status, 200, text);
  return async () => {
    const { body: told } = await service.get("/introspect", {
      ...{ method: "POST", body: encodeForm({ token: String(body.access_token) }) },
      headers: { authorization: basic("gate", SECRET), "content-type": "application/x-www-form-urlencoded" },
    });
    return told.active === true;
  };
}

const newMail = () => `${randomUUID()}@corp.example`;
const byEmail = (email: unknown) => ({ format: "email", email });

async function push(subject: object, { iss = CORP, type = REVOKED, jti = randomUUID(), payload = {} } = {}) {
  const claims = { iss, aud: ISSUER, iat: now(), jti, sub_id: subject, events: { [type]: payload } };
  const body = forge(key, claims, { header: { typ: "secevent+jwt" } });
  const [, name] = /\/\/(\w+)/.exec(iss) ?? [];
  const headers = { "content-type": "application/secevent+jwt" };
  const answer = await service.get(`/signals/${name}`, { method: "POST", headers, body });
  const event = (await service.events()).findLast(({ type: of }) => of.startsWith("signal."));
  return { status: answer.status, err: answer.body?.err, reason: event?.reason, detail: event?.detail };
}

test("PCL-D-12 an event about an address ends all users of its issuer who had it, in one entry, and no others", async () => {
  const mail = newMail();
  const [first, second, another, theirs] = [
    await tokenFor({ sub: `a-${mail}`, mail }),
    await tokenFor({ sub: `b-${mail}`, mail: mail.replace("corp.example", "CORP.Example") }),
    await tokenFor({ mail: newMail() }),
    await tokenFor({ iss: OTHER, mail }),
  ];
  const known = (await service.events()).length;
  const { status, reason, detail } = await push(byEmail(mail));
  assert.deepEqual([status, reason], [202, "by_issuer"]);
  assert.deepEqual(
    [await first(), await second(), await another(), await theirs()],
    [false, false, true, true],
  );
  assert.equal((await service.events()).length, known + 1);
  const { ends, also_ends: also } = detail as { ends: { sub: string }; also_ends: { sub: string }[] };
  assert.deepEqual([ends.sub, ...also.map(({ sub }) => sub)], [`a-${mail}`, `b-${mail}`]);
  const event = (await service.events()).at(-1) ?? assert.fail();
  const found = termsOf(event as AuditEvent).filter(({ name }) => name === "subject");
  assert.deepEqual(
    found.map(({ value }) => value),
    [`${CORP} a-${mail}`, `${CORP} b-${mail}`],
  );
});

test("PCL-D-12 the local part of an address has a case, and the whole has to be the same", async () => {
  const mail = newMail();
  const token = await tokenFor({ mail });
  for (const other of [mail.toUpperCase(), `${mail}.`, mail.replace("@", "+x@"), `x${mail}`]) {
    assert.deepEqual([(await push(byEmail(other))).reason, await token()], ["subject_unknown", true], other);
  }
});

test("PCL-D-12 an address that no user had is taken and told as subject_unknown, and one that is none is refused", async () => {
  const { status, reason } = await push(byEmail(newMail()));
  assert.deepEqual([status, reason], [202, "subject_unknown"]);
  const shown = ["Alice <a@corp.example>", "<a@corp.example>", " a@corp.example", "a@corp.example "];
  for (const none of ["alice", "@corp.example", "alice@", "", 7, null, ["a@corp.example"], ...shown]) {
    const { status: refused, err, reason: why } = await push(byEmail(none));
    assert.deepEqual(
      [refused, err, why],
      [400, "invalid_request", "event_subject_unsupported"],
      String(none),
    );
  }
});

test("PCL-D-12 the address of the latest token counts, by the time at which it was issued", async () => {
  const [old, young, sub] = [newMail(), newMail(), randomUUID()];
  const token = await tokenFor({ sub, mail: young, iat: now() - 30 });
  await tokenFor({ sub, mail: old, iat: now() - 60 });
  assert.deepEqual([(await push(byEmail(old))).reason, await token()], ["subject_unknown", true]);
  assert.deepEqual([(await push(byEmail(young))).reason, await token()], ["by_issuer", false]);
});

test("PCL-D-12 an address that its issuer does not call verified counts only where the operator says so", async () => {
  for (const verified of [false, null, "false", 1]) {
    const [mail, loose] = [newMail(), newMail()];
    const [strictly, loosely] = [
      await tokenFor({ mail, verified }),
      await tokenFor({ iss: LOOSE, mail: loose, verified }),
    ];
    assert.equal((await push(byEmail(mail))).reason, "subject_unknown");
    assert.equal((await push(byEmail(loose), { iss: LOOSE })).reason, "by_issuer");
    assert.deepEqual([await strictly(), await loosely()], [true, false], String(verified));
  }
  const mail = newMail();
  const token = await tokenFor({ mail, verified: "true" });
  assert.deepEqual([(await push(byEmail(mail))).reason, await token()], ["by_issuer", false]);
});

test("PCL-D-12, PCL-D-16 where the operator names no claim, nothing is kept and an event about an address is refused", async () => {
  const mail = newMail();
  const token = await tokenFor({ iss: CLOSED, mail });
  const { status, err, reason } = await push(byEmail(mail), { iss: CLOSED });
  assert.deepEqual([status, err, reason], [400, "invalid_request", "event_subject_unsupported"]);
  assert.equal(await token(), true);
  const digest = emailDigest(service.ports.hash.sha256, CLOSED, mail);
  assert.deepEqual(await service.ports.subjectEmails.having(digest, { limit: 1 }), []);
});

test("PCL-D-12, PCL-D-13 a user by address with a device is the user, and with a session that session alone", async () => {
  const [mail, other] = [newMail(), newMail()];
  const user = (email: string, more: object) => ({ format: "complex", user: byEmail(email), ...more });
  const opaque = (id: string) => ({ format: "opaque", id });
  const token = await tokenFor({ mail });
  await push(user(mail, { device: opaque("d1") }));
  assert.equal(await token(), false);
  const sub = randomUUID();
  const [desk, phone] = [
    await tokenFor({ sub, mail: other, sid: `desk-${sub}` }),
    await tokenFor({ sub, mail: other, sid: `phone-${sub}` }),
  ];
  await push(user(other, { session: opaque(`desk-${sub}`) }));
  assert.deepEqual([await desk(), await phone()], [false, true]);
  await push(user(other, { session: opaque("ALL") }));
  assert.equal(await phone(), false);
});

test("PCL-D-12 an address neither disables nor enables an account", async () => {
  const mail = newMail();
  const token = await tokenFor({ mail });
  for (const type of [DISABLED, ENABLED]) {
    const { status, reason } = await push(byEmail(mail), { type });
    assert.deepEqual([status, reason], [400, "event_subject_unsupported"]);
  }
  assert.equal(await token(), true);
});

test("PCL-D-15 an event about changed claims ends nothing where no rule demands claims of the issuer, and says so", async () => {
  const sub = randomUUID();
  const token = await tokenFor({ sub });
  const subject = { format: "iss_sub", iss: CORP, sub };
  const { status, reason } = await push(subject, { type: CHANGED, payload: { claims: { groups: [] } } });
  assert.deepEqual([status, reason, await token()], [202, "event_ends_nothing", true]);
});

test("PCL-D-12 an event about an address ends what began up to its time, also where it comes twice", async () => {
  const [mail, sub, jti] = [newMail(), randomUUID(), randomUUID()];
  const payload = { event_timestamp: now() - 20 };
  const older = await tokenFor({ sub, mail, iat: now() - 30 });
  const younger = await tokenFor({ sub, mail, iat: now() - 5 });
  for (const _ of [1, 2]) assert.equal((await push(byEmail(mail), { jti, payload })).status, 202);
  assert.deepEqual([await older(), await younger()], [false, true]);
});

test("PCL-D-12 more users of one address than one entry takes end in several", async () => {
  const mail = newMail();
  const email = emailDigest(service.ports.hash.sha256, CORP, mail);
  const times = { issuedAtSeconds: now(), expiresAtSeconds: now() + 60 };
  const subs = Array.from(
    { length: EMAIL_SUBJECTS_MAX + 1 },
    (_, at) => `${String(at).padStart(4, "0")}-${mail}`,
  );
  const event = { type: "user.signed_in", outcome: "allow", reason: "signed_in" } as const;
  await Promise.all(
    subs.map((sub) =>
      service.ports.journal.record({ event, email: { origin: { iss: CORP, sub }, email, ...times } }),
    ),
  );
  const [first, last] = [await tokenFor({ sub: subs[0], mail }), await tokenFor({ sub: subs.at(-1), mail })];
  assert.equal((await push(byEmail(mail))).status, 202);
  assert.deepEqual([await first(), await last()], [false, false]);
});

test("PCL-D-12 the sessions and refresh tokens of a user end by the address of their sign-in, which the store has only as a digest", async () => {
  provider.lies = {
    claims: (claims) => ({ ...claims, email: `${claims.sub}@Company.example`, email_verified: true }),
  };
  const userWith = async (user: string) => {
    const browser = new Browser(service, provider);
    const verifier = verifierOf();
    const asked = request(verifier, { scope: "notes.read offline_access" });
    const { body } = await redeem(service, await browser.codeFor(asked, user), verifier);
    const form = { grant_type: "refresh_token", refresh_token: String(body.refresh_token) };
    return async () => [
      (await browser.get("/account")).status,
      (await service.token(form, AS_WEB)).body.error ?? "none",
    ];
  };
  const [alice, bob] = [await userWith("alice"), await userWith("bob")];
  provider.lies = {};
  const events = { [REVOKED]: {} };
  const subject = { aud: ISSUER, sub_id: byEmail("alice@company.example"), events, exp: undefined };
  const body = await provider.logoutToken(subject, { typ: "secevent+jwt" });
  const headers = { "content-type": "application/secevent+jwt" };
  assert.equal((await service.get("/signals/provider", { method: "POST", headers, body })).status, 202);
  assert.equal((await alice())[1], "invalid_grant");
  assert.notEqual((await alice())[0], 200);
  assert.deepEqual(await bob(), [200, "none"]);
});
