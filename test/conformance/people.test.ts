/** Sign-in, consent and codes against the server as users run it, on both stores. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import postgres from "postgres";

import { mintX509Svid } from "../../scripts/dev-pki.ts";
import { encodeForm } from "../../scripts/http-client.ts";
import { asksForCertificate } from "../support/certificate-request.ts";
import { openCodeRaces } from "../support/code-races.ts";
import {
  AS_WEB,
  Browser,
  files,
  forPeople,
  locationOf,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  parametersOf,
  redeem,
  request,
  SCOPES,
  verifierOf,
} from "../support/people.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { claimsOf, ISSUER, makeWorld, type World, workload } from "../support/world.ts";

let provider: TestProvider;
let database: SharedPostgres;

before(async () => {
  [provider, database] = await Promise.all([startProvider(), sharePostgres()]);
});
after(() => stop(provider, database));

/** As in production: no secret in the configuration itself. */
function production() {
  const base = forPeople(provider);
  const secrets = [{ file: "app-secret" }];
  return {
    ...base,
    profile: "production",
    keys: { encryptionKey: { file: "keys/encryption-key" } },
    clients: { ...base.clients, [PRIVATE]: { ...base.clients[PRIVATE], secrets } },
    targets: [...base.targets, { names: ["https://machines.example"], scopes: ["machines.read"] }],
  };
}

const codeOf = (world: World, verifier: string): Promise<string> =>
  new Browser(world, provider).codeFor(request(verifier));

for (const store of ["SQLite", "PostgreSQL"] as const) {
  describe(`in production on ${store}`, () => {
    let world: World;
    let url = "";
    before(async () => {
      const place = store === "SQLite" ? {} : { postgres: await freshDatabase(database) };
      url = "postgres" in place ? place.postgres : "";
      const secret = { "app-secret": PRIVATE_SECRET, ...files(provider) };
      const at = "postgres" in place ? { store: { postgres: { file: "store-url" } } } : {};
      const urls = "postgres" in place ? { "store-url": place.postgres } : {};
      world = await makeWorld({ ...production(), ...at }, { ...place, files: { ...secret, ...urls } });
    });
    after(() => stop(world));

    test("RFC6749-3.1-1, RFC6749-3.1-4, RFC6749-4.1.3-1, RFC6749-4.1.3-6, RFC7636-4.5-1 a user signs in, allows, and the client gets the token of the user", async () => {
      const verifier = verifierOf();
      const code = await codeOf(world, verifier);
      const answer = await redeem(world, code, verifier);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers["cache-control"], "no-store");
      const { sub, client_id, scope, aud, act } = claimsOf(answer.body.access_token);
      assert.deepEqual(
        [sub, client_id, scope, aud, act],
        ["company:alice", PRIVATE, SCOPES.join(" "), NOTES, undefined],
      );
      assert.equal((await redeem(world, code, verifier)).body.error, "invalid_grant");
    });

    test("RFC7636-4.4-1 each code is kept with the challenge of its own request", async () => {
      const [mine, theirs] = [verifierOf(), verifierOf()];
      const codes = [await codeOf(world, mine), await codeOf(world, theirs)] as const;
      assert.equal((await redeem(world, codes[0], theirs)).body.error, "invalid_grant");
      assert.equal((await redeem(world, codes[1], theirs)).status, 200);
    });

    test("PAGE-D-15, PAGE-D-16 a user takes back what they allowed, and not even a code that is under way gives a token", async () => {
      const verifier = verifierOf();
      const browser = new Browser(world, provider);
      const back = await browser.decide(await browser.review(request(verifier), "bob"));
      const page = await browser.get("/account");
      const [, token, consent] =
        /name="token" value="([^"]*)"><input type="hidden" name="consent" value="([^"]*)"/.exec(page.text) ??
        assert.fail(page.text);
      const form = { token: `${token}`, consent: `${consent}` };
      assert.equal((await browser.post("/account/withdraw", form)).status, 303);
      const { body } = await redeem(world, parametersOf(back).code ?? "", verifier);
      assert.equal(body.error, "invalid_grant");
      const left = await browser.get("/account");
      assert.match(left.text, /You allow nothing.*<bdi>Web app.*You took back its permission\./s);
      assert.equal((await browser.post("/account/withdraw", form)).status, 409);
    });

    if (store === "PostgreSQL") {
      test("PAGE-D-4 a store that is lost while a user clicks is told as that, and the same click again gives the code", async (t) => {
        const sql = postgres(url, { max: 1 });
        t.after(() => sql.end());
        const verifier = verifierOf();
        const browser = new Browser(world, provider);
        const page = await browser.review(request(verifier), "erin");
        const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const lock = sql.begin(async (locking) => {
          // Consents can be read and not written.
          await locking`lock table consent in share row exclusive mode`;
          held.resolve();
          await release.promise;
        });
        await held.promise;
        const lost = await browser.decide(page).finally(release.resolve);
        await lock;
        assert.equal(lost.status, 503);
        assert.match(lost.text, /What you did may have been saved, or not/);
        const [, again = ""] = /href="([^"]*\/authorize\/review\?r=[^"]*)"/.exec(lost.text) ?? [];
        const back = await browser.decide(await browser.get(again));
        assert.match(locationOf(back), /[?&]code=/);
        assert.equal(locationOf(await browser.decide(page)), locationOf(back));
        const given = await redeem(world, parametersOf(back).code ?? "", verifier);
        assert.equal(given.status, 200, given.text);
        const [counted] = await sql`select count(*)::int as consents from consent where origin_sub = 'erin'`;
        assert.equal(counted?.consents, 1);
      });
    }

    test("RFC8705-5-1 a workload whose X.509-SVID no listener asks for is refused, and start and log say that mtls is missing", async () => {
      const path = "agents/planner";
      const { keyPem: key, chainPem: cert } = await mintX509Svid(world.trustDomain, workload(path));
      const request = { grant_type: "client_credentials", audience: "https://machines.example" };
      for (const form of [request, { ...request, client_id: workload(path) }]) {
        const answer = await world.token(form, {}, { key, cert });
        assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"]);
      }
      const refused = (): number =>
        world.server.lines.filter((line) => line.includes('"refused":"mtls_listener_missing"')).length;
      await until(() => refused() === 2, "both refusals are in the log with their reason");
      const told = world.server.lines.filter((line) =>
        /"message":"mtls: is missing: .* X\.509-SVID: set mtls/.test(line),
      );
      assert.equal(told.length, 1, world.server.lines.join("\n"));
    });

    test("B7523-D-2 the start says that assertions may name a token endpoint", () => {
      const told = world.server.lines.filter((line) =>
        line.includes("assertionAudience: accepts a token endpoint"),
      );
      assert.equal(told.length, 1);
    });

    test("HTTP-D-54, RFC6749-10.11-1, RFC6749-10.5-1 browsers are told to come by https alone", async () => {
      const page = await new Browser(world, provider).review(request(verifierOf()));
      assert.equal(page.headers["strict-transport-security"], "max-age=31536000");
    });
  });
}

describe("the pages of one server", () => {
  let world: World;
  before(async () => {
    world = await makeWorld(
      { ...production(), profile: "development" },
      {
        files: { "app-secret": PRIVATE_SECRET, ...files(provider) },
        clock: true,
      },
    );
  });
  after(() => stop(world));

  const metadata = async (suffix = "oauth-authorization-server") =>
    (await world.get(`/.well-known/${suffix}`)).body;

  test("RFC9207-2.3-1, RFC9207-2.3-3, MCP-O.7.1-2 the metadata say that responses name the issuer", async () => {
    const body = await metadata();
    assert.equal(body.issuer, ISSUER);
    assert.equal(body.authorization_response_iss_parameter_supported, true);
  });

  test("RFC9700-2.1.1-6, RFC9700-2.1.1-7, RFC9700-4.7.1-1, MCP-S.4-1 both documents say how a challenge is made", async () => {
    for (const body of [await metadata(), await metadata("openid-configuration")])
      assert.deepEqual(body.code_challenge_methods_supported, ["S256"]);
  });

  test("RFC8414-2-2, RFC8414-2-9, RFC9126-2-2, MCPC-D-7, MCPC-D-14, PROD-4.4-12 the metadata say what there is", async () => {
    const body = await metadata();
    assert.equal(body.authorization_endpoint, `${ISSUER}/authorize`);
    assert.equal(body.pushed_authorization_request_endpoint, `${ISSUER}/par`);
    assert.equal(body.request_uri_parameter_supported, false);
    assert.deepEqual(body.response_types_supported, ["code"]);
    assert.deepEqual(body.scopes_supported, [...SCOPES].sort());
    assert.ok((body.grant_types_supported as string[]).includes("authorization_code"));
    const methods = body.token_endpoint_auth_methods_supported as string[];
    assert.ok(methods.includes("none") && methods.includes("private_key_jwt"));
    // Browsers are asked for no certificate here, and there is no other listener.
    assert.deepEqual(
      [methods.filter((one) => /tls|x509/.test(one)), body.tls_client_certificate_bound_access_tokens],
      [[], false],
    );
    assert.ok(!(body.introspection_endpoint_auth_methods_supported as string[]).includes("none"));
    assert.equal(body.subject_types_supported, undefined);
    const openId = await metadata("openid-configuration");
    const { subject_types_supported, id_token_signing_alg_values_supported, ...same } = openId;
    assert.deepEqual(
      [subject_types_supported, id_token_signing_alg_values_supported],
      [["public"], ["RS256", "ES256"]],
    );
    assert.deepEqual(same, body);
  });

  test("RFC9207-2.3-2 iss is the issuer of the metadata, with a code and with an error", async () => {
    const { issuer } = await metadata();
    const browser = new Browser(world, provider);
    const page = await browser.review(request(verifierOf()));
    const refused = await browser.authorize(request(verifierOf(), { response_type: "token" }));
    const told = [await browser.decide(page), refused].map(parametersOf);
    assert.deepEqual([typeof told[0]?.code, told[1]?.error], ["string", "unsupported_response_type"]);
    assert.deepEqual([told[0]?.iss, told[1]?.iss], [issuer, issuer]);
  });

  test("HTTP-D-48, PAGE-D-6 what was given before lasts no longer because something else is given", async () => {
    const give = async (scope: string): Promise<{ scope: string; expires_at: number }> => {
      const browser = new Browser(world, provider);
      await browser.decide(await browser.review(request(verifierOf(), { scope }), "dora"));
      const recorded = (await world.events()).findLast(({ type }) => type === "consent.recorded");
      return recorded?.detail as { scope: string; expires_at: number };
    };
    const [read = "", write = ""] = SCOPES;
    const first = await give(read);
    world.pass(60);
    const second = await give(write);
    assert.deepEqual([second.scope, second.expires_at], [`${read} ${write}`, first.expires_at]);
    // All of it was asked about again.
    const third = await give(`${read} ${write}`);
    assert.ok(third.expires_at >= first.expires_at + 60, JSON.stringify(third));
  });

  test("RFC9700-2.6-7 no other origin may read a page, or anything on the way to one", async () => {
    const headers = { origin: "https://evil.example" };
    const query = encodeForm(request(verifierOf()));
    for (const path of [
      `/authorize?${query}`,
      "/signin",
      "/callback/company",
      "/signed-out",
      "/rp/jwks/company",
    ]) {
      const answer = await world.get(path, { headers });
      assert.equal(answer.headers["access-control-allow-origin"], undefined, path);
    }
  });

  test("HTTP-D-53, RFC6749-3.1-3, RFC9700-2.6-5 browsers are asked for no certificate, which they would ask their users for", async (t) => {
    assert.equal(await asksForCertificate(world.server.port, world.ca, "as.example"), false);
    const { signIn: _, policies: __, clients: ___, ...without } = forPeople(provider);
    const other = await makeWorld(without, { files: files(provider) });
    t.after(() => other.stop());
    assert.equal(await asksForCertificate(other.server.port, other.ca, "as.example"), true);
  });

  test("RFC6749-4.1.2-1, RFC6749-4.1.2-2 a code is good for a minute", async () => {
    const verifier = verifierOf();
    const code = await codeOf(world, verifier);
    world.pass(61);
    const late = await redeem(world, code, verifier);
    assert.deepEqual([late.status, late.body.error], [400, "invalid_grant"]);
    const { reason } = (await world.events()).findLast(({ type }) => type === "token.denied") ?? {};
    assert.equal(reason, "code_expired");
  });

  test("POLICY-D-22 the log line of a refused authorization request has the known name that is like its unknown resource", async () => {
    const browser = new Browser(world, provider);
    const wrong = await browser.authorize(request(verifierOf(), { resource: "https://note.example/mcp" }));
    assert.equal(parametersOf(wrong).error, "invalid_target");
    assert.doesNotMatch(locationOf(wrong), /notes/);
    await world.get("/jwks");
    const line = world.server.lines.find((one) => one.includes(String(wrong.headers["x-request-id"])));
    const { refused, meant } = JSON.parse(line ?? "{}");
    assert.deepEqual([refused, meant], ["target_unknown", NOTES]);
  });

  test("RFC9126-4-2 a pushed request waits for a minute", async () => {
    const pushed = await world.get("/par", {
      method: "POST",
      headers: { ...AS_WEB, "content-type": "application/x-www-form-urlencoded" },
      body: encodeForm(request(verifierOf())),
    });
    const { request_uri = "" } = pushed.body as { request_uri?: string };
    world.pass(61);
    const answer = await new Browser(world, provider).authorize({ client_id: PRIVATE, request_uri });
    assert.equal(answer.status, 400);
  });

  test("PAGE-D-5, COOKIE-8.4-1 a form of the account page is good for as long as its session, which ends after 15 minutes", async () => {
    const browser = new Browser(world, provider);
    const page = await browser.signIn(await browser.get("/account"));
    const token = /name="token" value="([^"]*)"/.exec(page.text)?.[1] ?? "";
    const form = { token, all: "1", confirm: "1" };
    world.pass(901);
    const late = await browser.post("/account/withdraw", form);
    assert.equal(late.status, 403);
    assert.match(late.text, /You are no longer signed in/);
    assert.equal(locationOf(await browser.get("/account")), `${ISSUER}/signin`);
  });

  test("PAGE-D-4 a request waits for ten minutes", async () => {
    const browser = new Browser(world, provider);
    const answer = await browser.authorize(request(verifierOf()));
    assert.equal((await browser.get(locationOf(answer))).status, 303);
    world.pass(601);
    assert.equal((await browser.get(locationOf(answer))).status, 400);
  });
});

test("RFC6749-10.5-2, RFC6749-4.1.2-3, RFC6749-4.1.2-4 of two instances that are shown one code one gives a token, which is not active afterwards", async (t) => {
  const races = await openCodeRaces(await freshDatabase(database), 2);
  t.after(() => races.stop());
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(await races.race(), { given: 1, living: 0 });
  }
});
