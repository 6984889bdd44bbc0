/** Authorization codes: once, by their client, with all that the request said. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { basic, encodeForm } from "../../../scripts/http-client.ts";
import {
  type Asked,
  Browser,
  files,
  forPeople,
  LOOPBACK_REDIRECT,
  NOTES,
  PRIVATE,
  PUBLIC,
  redeem,
  request,
  verifierOf,
  WEB_REDIRECT,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, type Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;
const SECOND_REDIRECT = "https://app.example/second";
const OTHER = "other-app";
const OTHER_SECRET = "another secret of more than thirty-two characters, 987654";

before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  service = await makeService(
    {
      ...base,
      clients: {
        ...base.clients,
        [PRIVATE]: { ...base.clients[PRIVATE], redirectUris: [SECOND_REDIRECT, WEB_REDIRECT] },
        [OTHER]: { method: "client_secret_basic", secrets: [OTHER_SECRET], redirectUris: [WEB_REDIRECT] },
        reader: { method: "client_secret_basic", secrets: [`reader ${OTHER_SECRET}`] },
      },
      targets: base.targets.map((target) => ({ ...target, introspectors: ["reader"] })),
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const codeOf = (verifier: string, extra: Asked = {}): Promise<string> =>
  new Browser(service, provider).codeFor(request(verifier, extra));

const isActive = async (token: unknown): Promise<unknown> => {
  const answer = await service.get("/introspect", {
    method: "POST",
    headers: {
      authorization: basic("reader", `reader ${OTHER_SECRET}`),
      "content-type": "application/x-www-form-urlencoded",
    },
    body: `token=${String(token)}`,
  });
  return answer.body.active;
};

test("RFC6749-4.1.2-3, RFC6749-4.1.2-4, RFC6749-10.5-2, RFC6749-10.5-4, RFC9700-4.2.4-3, RFC9700-4.2.4-4 a code that comes twice gives nothing, and ends what it gave", async () => {
  const verifier = verifierOf();
  const code = await codeOf(verifier);
  const first = await redeem(service, code, verifier);
  assert.equal(first.status, 200, first.text);
  assert.equal(await isActive(first.body.access_token), true);
  const second = await redeem(service, code, verifier);
  assert.deepEqual([second.status, second.body.error], [400, "invalid_grant"]);
  assert.equal(await isActive(first.body.access_token), false);
  const events = await service.events();
  assert.equal(events.findLast(({ type }) => type === "replay.detected")?.reason, "code_replayed");
  assert.equal(events.filter(({ type }) => type === "token.revoked").length, 1);
  assert.equal((await redeem(service, code, verifier)).status, 400);
  const again = (await service.events()).filter(({ type }) => type === "token.revoked");
  assert.equal(again.length, 1, "an ended token is not ended again");
});

test("RFC6749-4.1.2-3 of ten redemptions at the same time one gives a token, which is ended by the others", async () => {
  const verifier = verifierOf();
  const code = await codeOf(verifier);
  const all = await Promise.all(Array.from({ length: 10 }, () => redeem(service, code, verifier)));
  const given = all.filter(({ status }) => status === 200);
  assert.equal(given.length, 1);
  assert.equal(await isActive(given[0]?.body.access_token), false);
});

test("RFC7636-4.2-2 the method is S256: the verifier of the example in RFC 7636 fits its challenge, which is none itself", async () => {
  const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
  const codeFor = () => codeOf("", { code_challenge: challenge });
  assert.equal(
    (await redeem(service, await codeFor(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")).status,
    200,
  );
  assert.equal((await redeem(service, await codeFor(), challenge)).body.error, "invalid_grant");
});

test("RFC6749-4.1.3-1 a redemption without a code is refused", async () => {
  const refused = await redeem(service, "", verifierOf());
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_request"], refused.text);
});

const spoiled = [
  [
    "RFC7636-4.6-1, RFC9700-2.1.1-3, RFC9700-4.2.4-3 another verifier",
    { code_verifier: verifierOf() },
    "invalid_grant",
  ],
  ["RFC7636-4.1-1 a verifier of other characters", { code_verifier: `${"a".repeat(42)}+` }, "invalid_grant"],
  ["RFC9700-2.1.1-4, RFC9700-4.8.2-1 no verifier", { code_verifier: "" }, "invalid_request"],
  [
    "RFC6749-4.1.3-1, RFC6749-4.1.3-7, RFC6749-10.6-1, RFC9700-4.5.3-1 another redirect URI",
    { redirect_uri: `${WEB_REDIRECT}?` },
    "invalid_grant",
  ],
  [
    "RFC6749-4.1.2-5 a redirect URI that its client has too",
    { redirect_uri: SECOND_REDIRECT },
    "invalid_grant",
  ],
  [
    "RFC6749-4.1.3-1, RFC6749-4.1.3-7 no redirect URI where the request had one",
    { redirect_uri: "" },
    "invalid_grant",
  ],
  ["MCPC-D-13 another resource", { resource: "https://other.example" }, "invalid_target"],
  ["MCPC-D-13 a resource beside its own", { resource: [NOTES, "https://other.example"] }, "invalid_target"],
] as const;
for (const [name, extra, error] of spoiled) {
  test(`HTTP-D-36, ${name} gives nothing, and uses the code up`, async () => {
    const verifier = verifierOf();
    const code = await codeOf(verifier);
    const refused = await redeem(service, code, verifier, extra);
    assert.deepEqual([refused.status, refused.body.error], [400, error], refused.text);
    const then = await redeem(service, code, verifier);
    assert.deepEqual([then.status, then.body.error], [400, "invalid_grant"]);
  });
}

test("HTTP-D-36, RFC6749-4.1.3-5, RFC6749-10.5-3, RFC6749-4.1.2-5 another client can neither use nor spoil a code", async () => {
  const verifier = verifierOf();
  const code = await codeOf(verifier);
  const theirs = await redeem(service, code, verifier, {}, { authorization: basic(OTHER, OTHER_SECRET) });
  assert.deepEqual([theirs.status, theirs.body.error], [400, "invalid_grant"]);
  const unproven = await redeem(service, code, verifier, { client_id: PUBLIC }, {});
  assert.deepEqual([unproven.status, unproven.body.error], [400, "invalid_grant"]);
  assert.equal((await redeem(service, code, verifier)).status, 200);
});

test("RFC6749-4.1.3-3, RFC6749-4.1.3-4 a confidential client has to prove itself, and a wrong proof is not ignored", async () => {
  const verifier = verifierOf();
  const code = await codeOf(verifier);
  const bare = await redeem(service, code, verifier, { client_id: PRIVATE }, {});
  assert.equal(bare.body.error, "invalid_client");
  const wrong = await redeem(service, code, verifier, {}, { authorization: basic(PRIVATE, "wrong") });
  assert.deepEqual([wrong.status, wrong.body.error], [401, "invalid_client"]);
  assert.equal((await redeem(service, code, verifier)).status, 200);
});

test("MCPC-D-9 a public client gets nothing but what users give", async () => {
  for (const grant_type of ["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"]) {
    const answer = await service.token({
      grant_type,
      client_id: PUBLIC,
      scope: "notes.read",
      assertion: "a",
    });
    assert.equal(answer.status, 400, answer.text);
    assert.equal(answer.body.error, "invalid_client");
  }
  const asked = await service.get("/introspect", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: `token=x&client_id=${PUBLIC}&grant_type=authorization_code`,
  });
  assert.equal(asked.status, 401);
});

test("RFC7009-5-4, RFC7009-2.1-7 a public client ends its own token by its client_id, and no other's", async () => {
  const post = (form: Record<string, string>) =>
    service.get("/revoke", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: encodeForm(form),
    });
  const verifier = verifierOf();
  const loopback = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
  const code = await codeOf(verifier, loopback);
  const own = String((await redeem(service, code, verifier, loopback, {})).body.access_token);
  const others = verifierOf();
  const other = String((await redeem(service, await codeOf(others), others)).body.access_token);
  const recorded = (await service.events()).length;
  const refused = await post({ token: other, client_id: PUBLIC });
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_grant"]);
  assert.equal((await post({ token: "guess", client_id: PUBLIC })).status, 200);
  assert.equal(await isActive(other), true);
  assert.equal((await service.events()).length, recorded, "what anyone may send fills no trail");
  assert.equal((await post({ token: own, client_id: PUBLIC })).status, 200);
  assert.equal(await isActive(own), false);
  // A client that has a secret is not known by its name.
  assert.equal((await post({ token: other, client_id: PRIVATE })).body.error, "invalid_client");
  assert.equal(await isActive(other), true);
});

test("MCPC-D-18, RFC6749-5.2-4 an unknown client that sends no credential learns it by 401, one that sends a wrong one as before", async () => {
  const unknown = await service.token({ grant_type: "authorization_code", code: "c", client_id: "gone" });
  assert.deepEqual([unknown.status, unknown.body.error], [401, "invalid_client"]);
  assert.match(String(unknown.headers["www-authenticate"]), /^Basic /);
  const secret = await service.token({
    grant_type: "authorization_code",
    code: "c",
    client_id: "gone",
    client_secret: "x",
  });
  assert.deepEqual([secret.status, secret.body.error], [400, "invalid_client"]);
});

test("MCPC-D-13, RFC8707-2.1-4 the resource may be repeated, and the answer is for it", async () => {
  const verifier = verifierOf();
  const answer = await redeem(service, await codeOf(verifier), verifier, { resource: NOTES });
  assert.equal(claimsOf(answer.body.access_token).aud, NOTES);
});

test("RFC6749-10.3-1, AUDIT-D-3 neither code, verifier nor cookie is in the audit trail, and the user is", async () => {
  const verifier = verifierOf();
  const code = await codeOf(verifier);
  await redeem(service, code, verifier);
  const events = await service.events();
  const text = JSON.stringify(events);
  for (const secret of [code, verifier]) assert.ok(!text.includes(secret));
  const issued = events.findLast(({ type }) => type === "token.issued") as
    | { subject?: { iss: string; sub: string; token: { type: string } }; mode?: string }
    | undefined;
  assert.deepEqual(
    [issued?.mode, issued?.subject?.iss, issued?.subject?.sub],
    ["authorization_code", provider.issuer, "alice"],
  );
  assert.equal(issued?.subject?.token.type, "code");
});

test("HTTP-D-52, RFC6749-10.5-2 guesses of a public client fill no trail", async () => {
  const before = (await service.events()).length;
  for (let guess = 0; guess < 5; guess++) {
    const answer = await redeem(service, `guess-${guess}`, verifierOf(), { client_id: PUBLIC }, {});
    assert.equal(answer.body.error, "invalid_grant");
  }
  assert.equal((await service.events()).length, before);
});
