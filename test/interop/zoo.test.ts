/**
 * What clients, platforms and providers send, each a file of test/zoo in its true shape with invented names, and what the
 * answer must be. A new report becomes one file.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { basic } from "../../scripts/http-client.ts";
import { parseClientDocument } from "../../src/settings/client-metadata.ts";
import { parseJwkSet, selectKey } from "../../src/spec/rfc7517.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT as WORKLOADS } from "../../src/spec/workload-grant.ts";
import { forge, makeKey, seconds } from "../support/forge.ts";
import { makePlatform } from "../support/platforms.ts";
import type { TestProvider } from "../support/provider.ts";
import { startProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import type { World } from "../support/world.ts";
import { ISSUER, makeWorld, workload } from "../support/world.ts";

const ZOO = new URL("../zoo/", import.meta.url);
const API = "https://api.example";
const OP = "https://op.example";
const SECRET = "zoo-zoo-zoo-zoo-zoo-zoo-zoo-12345";
const PLATFORM = "https://ci.example";

type Told = { status: number; has?: JsonObject };
type Shape = { by: string } & (
  | { kind: "registration"; sent: object; answer: Told }
  | { kind: "document"; sent: { client_id?: string }; answer: { taken: boolean } }
  | { kind: "keys"; sent: { keys: object[]; header: { alg: string; kid: string } }; answer: string }
  | { kind: "event"; sent: object; answer: Told }
  | {
      kind: "token";
      sent: Record<string, string>;
      answer: Told;
      auth?: "basic" | "body";
      /** Claims of the platform's token, beside the usual. */
      platform?: object;
    }
);

const platform = makePlatform(PLATFORM, { sub: "repo:example/shop:ref:refs/heads/main" });
const op = { ...makeKey("ES256", "op-1"), typ: "secevent+jwt" };
let provider: TestProvider;
let world: World;

before(async () => {
  provider = await startProvider();
  world = await makeWorld(
    {
      registration: { mode: "open", open: { scopes: ["read"] } },
      clients: { app: { method: "client_secret", secrets: [SECRET], defaultTarget: API } },
      signIn: { providers: { company: provider.provider() } },
      trustedIssuers: {
        ...provider.trusted({ acceptAs: ["jwt"] }),
        [PLATFORM]: {
          keys: { file: "platform.json" },
          workloads: { ci: { tenancy: "dedicated", subjects: ["repo:example/shop:*"] } },
        },
        [OP]: { keys: { file: "op.json" }, subjects: "keep", acceptAs: ["jwt"], signals: { name: "op" } },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        { id: "app", allow: "client_credentials", clients: ["app"], targets: [API], scopes: ["read"] },
        {
          ...{ id: "workloads", allow: "client_credentials", targets: [API], scopes: ["read"] },
          actors: [workload("agents/*"), "platform://ci/*"],
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

/** What was sent in the true shape, with tokens of this test in the places of `PLATFORM` and `SVID`. */
async function answerOf(shape: Shape): Promise<unknown> {
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
    case "event": {
      const claims = { iss: OP, aud: ISSUER, iat: seconds(), jti: randomUUID(), ...shape.sent };
      const headers = { "content-type": "application/secevent+jwt" };
      return world.get("/signals/op", { method: "POST", headers, body: forge(op, claims) });
    }
    case "token": {
      const given = {
        PLATFORM: platform.token(shape.platform),
        SVID: await world.svid("agents/one"),
      };
      const form = Object.entries(shape.sent).map(([name, value]) => [
        name,
        Object.entries(given).find(([known]) => known === value)?.[1] ?? value,
      ]);
      const inBody = shape.auth === "body" ? { client_id: "app", client_secret: SECRET } : {};
      const headers: Record<string, string> =
        shape.auth === "basic" ? { authorization: basic("app", SECRET) } : {};
      return world.token({ ...Object.fromEntries(form), ...inBody }, headers);
    }
  }
}

const files = readdirSync(ZOO).filter((file) => file.endsWith(".json"));

for (const file of files) {
  const shape: Shape = JSON.parse(readFileSync(new URL(file, ZOO), "utf8"));
  test(`the zoo: ${file.replace(".json", "")}, ${shape.by}, is answered as it must be`, async () => {
    const answer = await answerOf(shape);
    if (typeof shape.answer === "string" || "taken" in shape.answer) {
      assert.deepEqual(answer, shape.answer);
      return;
    }
    const { status, body, text } = answer as { status: number; body: JsonObject; text: string };
    assert.equal(status, shape.answer.status, text);
    for (const [name, value] of Object.entries(shape.answer.has ?? {}))
      assert.deepEqual(body[name], value, text);
  });
}

test("the zoo has at least sixty shapes", () => assert.ok(files.length >= 60, String(files.length)));
