/** Keys of platforms by discovery (hostile variant 17): what a bad source leaves, gives its workloads nothing. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { basic } from "../../scripts/http-client.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { type Publisher, startPublisher } from "../support/documents.ts";
import { byGrant, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { LOOPBACK } from "../support/web.ts";
import { makeWorld, type World } from "../support/world.ts";

const API = "https://api.example";
const WELL_KNOWN = "/.well-known/oauth-authorization-server";
const signer = makePlatform("https://unused.example", { sub: "agent/1" });

let publisher: Publisher;
let world: World;
before(async () => {
  publisher = await startPublisher();
  const page = (path: string, body: object): unknown =>
    publisher.pages.set(path, { status: 200, body: JSON.stringify(body) });
  const metadata = (path: string, changes: object = {}): unknown =>
    page(`${WELL_KNOWN}${path}`, {
      issuer: publisher.origin + path,
      jwks_uri: `${publisher.origin}/jwks`,
      ...changes,
    });
  publisher.pages.set("/jwks", { status: 200, body: signer.jwks });
  metadata("/good");
  metadata("/private");
  metadata("/other", { issuer: "https://other.example" });
  publisher.pages.set("/moved", { status: 302, body: "" });
  metadata("/redirected", { jwks_uri: `${publisher.origin}/moved` });
  publisher.pages.set("/gone", { status: 404, body: "" });
  metadata("/without-keys", { jwks_uri: `${publisher.origin}/gone` });
  const paths = ["good", "private", "other", "redirected", "without-keys"];
  const reach = { ca: { file: "publisher.pem" }, privateNetworks: LOOPBACK };
  const workloads = (name: string) => ({ [name]: { tenancy: "dedicated", subjects: ["agent/*"] } });
  const rule = { allow: "client_credentials", targets: [API], scopes: ["read"] };
  world = await makeWorld(
    {
      trustedIssuers: Object.fromEntries(
        paths.map((path) => [
          `${publisher.origin}/${path}`,
          {
            keys: { discover: true, ...reach, ...(path === "private" && { privateNetworks: [] }) },
            workloads: workloads(path),
          },
        ]),
      ),
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [{ id: "any", ...rule, actors: paths.map((path) => `platform://${path}/*`) }],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    { files: { "publisher.pem": publisher.ca } },
  );
});
after(() => stop(world, publisher));

test("PLAT-D-16 the workloads of a registration share one rate, which is not that of a client with its name", async (t) => {
  const secret = "the-secret-of-a-client-of-that-name-1";
  const rule = { allow: "client_credentials", targets: [API], scopes: ["read"] };
  const few = await makeWorld(
    {
      clients: { acme: { method: "client_secret_basic", secrets: [secret] } },
      trustedIssuers: {
        [signer.issuer]: {
          keys: { file: "acme.json" },
          workloads: { acme: { tenancy: "dedicated", subjects: ["agent/*"] } },
        },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        { id: "any", ...rule, actors: ["platform://acme/*"] },
        { id: "acme", ...rule, clients: ["acme"] },
      ],
      limits: { requestsPerSecondByClient: 3 },
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    { files: { "acme.json": signer.jwks } },
  );
  t.after(() => stop(few));
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      few.token(byGrant(signer.token({ sub: `agent/${index}` }), { resource: API })),
    ),
  );
  const statuses = answers.map(({ status }) => status);
  assert.ok(statuses.includes(200) && statuses.includes(429), statuses.join(" "));
  const own = { grant_type: "client_credentials", resource: API };
  const { status, text } = await few.token(own, { Authorization: basic("acme", secret) });
  assert.equal(status, 200, text);
});

const ask = (path: string) =>
  world.token(byGrant(signer.token({ iss: `${publisher.origin}/${path}` }), { resource: API }));

test("WAG-6.1-1, WIF-V-1 the keys that the metadata of the platform name verify its tokens", async () => {
  await until(async () => (await ask("good")).status === 200, "the keys were fetched");
});

for (const [path, what] of [
  ["other", "metadata of another issuer"],
  ["redirected", "a key set that redirects"],
  ["private", "a private address that is not permitted"],
  ["without-keys", "a key set that is gone"],
] as const) {
  test(`WAG-6.1-1, WIF-S-2 a platform with ${what} is refused, and told nothing of it (hostile variant 17)`, async () => {
    const { status, body, headers } = await ask(path);
    const text = { error: "invalid_grant", error_description: "the grant is not accepted" };
    assert.deepEqual([status, body], [400, text]);
    const line = () => world.server.lines.find((one) => one.includes(String(headers["x-request-id"])));
    await until(() => line() !== undefined, "the refusal is logged");
    assert.match(JSON.parse(line() ?? "").refused, /^issuer_source_un/);
  });
}
