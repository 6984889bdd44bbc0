/**
 * What clients, platforms and providers send, each a file of test/zoo in its true shape with invented names, and what the
 * answer must be. A new report becomes one file.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { basic, encodeForm } from "../../scripts/http-client.ts";
import { parseClientDocument } from "../../src/settings/client-metadata.ts";
import { chainFieldOf, PROXY_FORMS, type ProxyForm, readForwarded } from "../../src/settings/proxy-forms.ts";
import { parseJwkSet, selectKey } from "../../src/spec/rfc7517.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT as WORKLOADS } from "../../src/spec/workload-grant.ts";
import { forge, makeKey, seconds } from "../support/forge.ts";
import {
  Browser,
  forPeople,
  LOOPBACK_REDIRECT,
  PUBLIC,
  redeem,
  request,
  SCOPES,
  verifierOf,
} from "../support/people.ts";
import { makePlatform } from "../support/platforms.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, EXCHANGE, ISSUER, JWT, makeWorld, type World, workload } from "../support/world.ts";

const ZOO = new URL("../zoo/", import.meta.url);
const API = "https://api.example";
const NEXT = "https://next.example";
const OP = "https://op.example";
const SECRET = "zoo-zoo-zoo-zoo-zoo-zoo-zoo-12345";
const PLATFORM = "https://ci.example";
const owner = workload("app");

type Told = { status: number; has?: JsonObject };
/** What an event did: its reason in the trail, whether an older token of its subject ends, and what a younger one gets. */
type Effect = { status: number; reason: string; older: "ends" | "stays"; younger: "given" | "refused" };
type Shape = { by: string } & (
  | { kind: "registration"; sent: object; answer: Told }
  | { kind: "document"; sent: { client_id?: string }; answer: { taken: boolean } }
  | { kind: "keys"; sent: { keys: object[]; header: { alg: string; kid: string } }; answer: string }
  | { kind: "event"; sent: object; answer: Effect }
  /** `form` is that of the configuration, with its own field; `rfc9440` by default. */
  | { kind: "proxy"; form?: ProxyForm; sent: { [field: string]: string[] }; answer: string }
  | {
      kind: "refresh";
      sent: { atOnce: number };
      answer: { statuses: number[]; successors: number; after: number };
    }
  | {
      kind: "token";
      /** As text: the body as it is, where its encoding is what matters. */
      sent: Record<string, string> | string;
      /** With the claims of the access token, where they matter. */
      answer: Told & { claims?: JsonObject };
      auth?: "basic" | "body";
      /** Claims of the platform's token, beside the usual. */
      platform?: object;
    }
);

const platform = makePlatform(PLATFORM, { sub: "repo:example/shop:ref:refs/heads/main" });
const op = { ...makeKey("ES256", "op-1"), typ: "secevent+jwt" };
/** Of no certificate: the fields are read before it is. */
const DER = Buffer.concat([Buffer.from([0x30, 0x82]), randomBytes(398)]);
const WRITTEN: Record<string, string> = {
  DER: DER.toString("base64"),
  PEM: encodeURIComponent(
    `-----BEGIN CERTIFICATE-----\n${DER.toString("base64").replaceAll(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`,
  ),
  HASH: createHash("sha256").update(DER).digest("hex"),
};
const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("base64url");
let provider: TestProvider;
let world: World;

before(async () => {
  provider = await startProvider();
  const people = forPeople(provider);
  world = await makeWorld(
    {
      registration: { mode: "open", open: { scopes: ["read"] } },
      clients: {
        [PUBLIC]: people.clients[PUBLIC],
        app: { method: "client_secret", secrets: [SECRET], defaultTarget: API, workload: owner },
        caller: { method: "client_secret", secrets: [SECRET] },
      },
      signIn: people.signIn,
      trustedIssuers: {
        ...provider.trusted({ acceptAs: ["jwt"] }),
        [PLATFORM]: {
          keys: { file: "platform.json" },
          workloads: {
            ci: { tenancy: "dedicated", subjects: ["repo:example/shop:*"] },
            ids: {
              ...{ tenancy: "dedicated", subjects: ["repo:example@1234567/*", "repo:example/store:*"] },
              claims: { "/repository_owner_id": ["1234567"] },
              name: ["/repository_id", "/environment"],
            },
            cluster: { tenancy: "dedicated", subjects: ["system:serviceaccount:team-a:*"] },
          },
        },
        [OP]: {
          keys: { file: "op.json" },
          subjects: "keep",
          acceptAs: ["jwt"],
          signals: { name: "op", email: "/email" },
        },
      },
      targets: [
        { names: [API], owners: [owner], introspectors: ["app"], scopes: ["read", "write"] },
        { names: [NEXT], scopes: ["read"] },
        ...people.targets,
      ],
      policies: [
        ...people.policies.map((rule) => ({ ...rule, clients: [PUBLIC], refresh: true })),
        {
          ...{ id: "onward", allow: "impersonation", clients: ["app"], targets: [NEXT], scopes: ["read"] },
          ...{ subjects: { issuers: [ISSUER] }, subjectToken: { audiences: ["self"] } },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
        {
          ...{ id: "users", allow: "impersonation", clients: ["app"], targets: [API], scopes: ["read"] },
          ...{ subjects: { issuers: [OP] }, subjectToken: { audiences: [ISSUER] } },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
        {
          id: "app",
          allow: "client_credentials",
          clients: ["app", "caller"],
          targets: [API],
          scopes: ["read", "write"],
        },
        {
          ...{ id: "workloads", allow: "client_credentials", targets: [API], scopes: ["read"] },
          actors: [workload("agents/*"), "platform://ci/*", "platform://ids/*", "platform://cluster/*"],
        },
      ],
      drafts: [SPIFFE, WORKLOADS],
      limits: { registrationsPerHourBySource: 1_000, failuresPerMinuteBySource: 1_000 },
    },
    {
      files: {
        "provider.pem": provider.ca,
        "platform.json": platform.jwks,
        "op.json": JSON.stringify({ keys: [op.jwk] }),
      },
    },
  );
});
after(() => stop(world, provider));

const JSON_BODY = { "content-type": "application/json" };
const AS_APP = { authorization: basic("app", SECRET) };

/** What the app gets for a user of the issuer of events, whose token began so long ago. */
const exchangeOf = (user: string, agoSeconds: number, own = "1") => {
  const now = seconds();
  const claims = { iss: OP, sub: user, aud: ISSUER, iat: now - agoSeconds, exp: now + 600 };
  const its = {
    jti: `${user}-t${own}`,
    sid: `${user}-s${own}`,
    email: `${user}@example.com`,
    email_verified: true,
  };
  const subject_token = forge({ ...op, typ: "JWT" }, { ...claims, ...its, scope: "read" });
  const form = { grant_type: EXCHANGE, subject_token, subject_token_type: JWT, audience: API };
  return world.token(form, AS_APP);
};

async function isActive(token: unknown): Promise<boolean> {
  const { body } = await world.get("/introspect", {
    ...{ method: "POST", body: encodeForm({ token: String(token) }) },
    headers: { ...AS_APP, "content-type": "application/x-www-form-urlencoded" },
  });
  return body.active === true;
}

/** The user of an event of the files is "alice", and another one for each file; the event is of ten seconds ago. */
async function effectOf(file: string, sent: object): Promise<Effect> {
  const user = `alice-${file}`;
  const { status: given, body, text: refusal } = await exchangeOf(user, 25);
  assert.equal(given, 200, refusal);
  const own = JSON.parse(JSON.stringify(sent).replaceAll("alice", user));
  const claims = { iss: OP, aud: ISSUER, iat: seconds() - 10, jti: randomUUID(), ...own };
  const headers = { "content-type": "application/secevent+jwt" };
  const known = (await world.events()).length;
  const { status } = await world.get("/signals/op", { method: "POST", headers, body: forge(op, claims) });
  const event = (await world.events()).slice(known).findLast(({ type }) => /^(signal|subject)\./.test(type));
  return {
    status,
    reason: event?.reason ?? "none",
    older: (await isActive(body.access_token)) ? "stays" : "ends",
    younger: (await exchangeOf(user, 0, "2")).status === 200 ? "given" : "refused",
  };
}

/** One refresh token, sent so many times at once; `after`: what its successor gets then. */
async function refreshAtOnce(times: number) {
  const verifier = verifierOf();
  const asked = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
  const scope = [...SCOPES, "offline_access"].join(" ");
  const code = await new Browser(world, provider).codeFor(request(verifier, { ...asked, scope }));
  const { body } = await redeem(world, code, verifier, asked, {});
  const refresh = (token: unknown) =>
    world.token({ grant_type: "refresh_token", refresh_token: String(token), client_id: PUBLIC });
  const answers = await Promise.all(Array.from({ length: times }, () => refresh(body.refresh_token)));
  const successors = new Set(answers.map((answer) => answer.body.refresh_token));
  const [successor] = successors;
  const after = (await refresh(successor)).status;
  return { statuses: [...new Set(answers.map(({ status }) => status))], successors: successors.size, after };
}

/** What was sent in the true shape, with tokens of this test in the places of `PLATFORM`, `SVID` and `OWN`, and a certificate in that of `DER`. */
async function answerOf(file: string, shape: Shape): Promise<unknown> {
  switch (shape.kind) {
    case "registration":
      return world.get("/register", { method: "POST", headers: JSON_BODY, body: JSON.stringify(shape.sent) });
    case "document": {
      const url = shape.sent.client_id?.startsWith("https://other.") ? undefined : shape.sent.client_id;
      const document = parseClientDocument(url ?? "https://none.example/c.json", JSON.stringify(shape.sent));
      return { taken: document.ok };
    }
    case "keys": {
      const set = parseJwkSet(JSON.stringify({ keys: shape.sent.keys }));
      const key = set.ok ? selectKey(set.value, shape.sent.header) : set;
      return key.ok ? "ok" : key.error.kind;
    }
    case "event":
      return effectOf(file, shape.sent);
    case "proxy": {
      const { form = "rfc9440" } = shape;
      const { field } = PROXY_FORMS[form];
      // Lines of one field come as one text.
      const values = [field, chainFieldOf(field)].map((name) =>
        shape.sent[name.toLowerCase()]
          ?.join(", ")
          .replaceAll(/DER|PEM|HASH/g, (name) => WRITTEN[name] ?? name),
      );
      const read = readForwarded(form, values, sha256);
      if (!read.ok) return read.error.kind;
      return `${read.value === undefined ? 0 : 1 + (read.value.chain ?? []).length} certificates`;
    }
    case "refresh":
      return refreshAtOnce(shape.sent.atOnce);
    case "token": {
      if (typeof shape.sent === "string") {
        const headers = { ...AS_APP, "content-type": "application/x-www-form-urlencoded" };
        return world.get("/token", { method: "POST", headers, body: shape.sent });
      }
      const asCaller = { authorization: basic("caller", SECRET) };
      const own = await world.token({ grant_type: "client_credentials", audience: API }, asCaller);
      const given = {
        PLATFORM: platform.token(shape.platform),
        SVID: await world.svid("agents/one"),
        OWN: String(own.body.access_token),
      };
      const form = Object.entries(shape.sent).map(([name, value]) => [
        name,
        Object.entries(given).find(([known]) => known === value)?.[1] ?? value,
      ]);
      const inBody = shape.auth === "body" ? { client_id: "app", client_secret: SECRET } : {};
      const headers: Record<string, string> = shape.auth === "basic" ? AS_APP : {};
      return world.token({ ...Object.fromEntries(form), ...inBody }, headers);
    }
  }
}

const files = readdirSync(ZOO).filter((file) => file.endsWith(".json"));

for (const file of files) {
  const shape: Shape = JSON.parse(readFileSync(new URL(file, ZOO), "utf8"));
  test(`the zoo: ${file.replace(".json", "")}, ${shape.by}, is answered as it must be`, async () => {
    const answer = await answerOf(file.replace(".json", ""), shape);
    if (shape.kind !== "registration" && shape.kind !== "token") {
      assert.deepEqual(answer, shape.answer);
      return;
    }
    const { status, body, text } = answer as { status: number; body: JsonObject; text: string };
    assert.equal(status, shape.answer.status, text);
    for (const [name, value] of Object.entries(shape.answer.has ?? {}))
      assert.deepEqual(body[name], value, text);
    if (shape.kind === "token" && shape.answer.claims !== undefined) {
      const claims = claimsOf(String(body.access_token));
      for (const [name, value] of Object.entries(shape.answer.claims)) assert.deepEqual(claims[name], value);
    }
  });
}

test("the zoo has at least sixty shapes", () => assert.ok(files.length >= 60, String(files.length)));
