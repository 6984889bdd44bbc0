/** All endpoints in this process: a request sees one state of the settings while the configuration is reloaded. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mintJwtSvid } from "../scripts/dev-keys.ts";
import { makeTrustDomain } from "../scripts/dev-pki.ts";
import { makeProfile } from "../scripts/dev-profile.ts";
import { basic } from "../scripts/http-client.ts";
import { openJournal } from "../src/adapters/audit/journal.ts";
import { receiptsOf } from "../src/adapters/audit/receipts.ts";
import { clock } from "../src/adapters/clock.ts";
import { hash } from "../src/adapters/crypto/hash.ts";
import { makeNonces } from "../src/adapters/crypto/nonces.ts";
import { random } from "../src/adapters/crypto/random.ts";
import { makeRegistrationTokens } from "../src/adapters/crypto/registration-tokens.ts";
import { verifier } from "../src/adapters/crypto/verifier.ts";
import { verifyPath } from "../src/adapters/crypto/x509.ts";
import { openStore } from "../src/adapters/store/open.ts";
import { makeThrottle } from "../src/adapters/throttle.ts";
import { app } from "../src/app.ts";
import { loadConfig } from "../src/config/config.ts";
import type { Peer } from "../src/http/handler.ts";
import type { KeySource, Ports } from "../src/ports.ts";
import { err, ok } from "../src/result.ts";
import type { Client } from "../src/settings/settings.ts";
import { JWT_SPIFFE } from "../src/spec/spiffe/client-auth.ts";
import { bearer, makeKey } from "./support/documents.ts";
import { migratedFile } from "./support/migrated.ts";
import { supplied } from "./support/nasty.ts";
import { openSigner } from "./support/signer.ts";

test("AUDIT-D-4 the recorded digest is that of the policy that decided, even if the configuration is reloaded meanwhile", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "mandate app "));
  t.after(() => rmSync(parent, { recursive: true }));
  const { configFile, issuer } = await makeProfile(join(parent, "data"));
  const versions = ["one", "two"].map((id) => {
    const config = JSON.parse(readFileSync(configFile, "utf8"));
    config.policies[0].id = id;
    writeFileSync(configFile, JSON.stringify(config));
    const loaded = loadConfig(configFile);
    assert.ok(loaded.ok);
    return loaded.value;
  });
  const [first, second] = versions;
  assert.ok(first && second);
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "app", store: store.log, clock, random, onFatal });
  const none = { key: async () => err("source_unknown" as const) };
  const nowhere = { find: async () => err({ reason: "documents_off" } as const) };
  const signer = await openSigner(store, new Uint8Array(32), ["ES256"], clock);
  let reads = 0;
  const ports: Ports = {
    clock,
    random,
    hash,
    journal,
    outage: journal.outage,
    verifier,
    // The configuration changes between any two reads.
    settings: () => (reads++ % 2 === 0 ? first.settings : second.settings),
    clients: { find: async (clientId) => first.settings.clients.get(clientId) },
    clientDocuments: nowhere,
    registrations: store.registrations,
    registrationTokens: makeRegistrationTokens([new Uint8Array(32)]),
    nonces: makeNonces([new Uint8Array(32)], first.settings.issuer, clock),
    facts: store.facts,
    consents: store.consents,
    families: store.families,
    sessions: store.shortLived,
    jobs: store.jobs,
    endings: store.endings,
    subjectEmails: store.subjectEmails,
    audit: { ...store.audit, keys: () => [] },
    receipts: receiptsOf({ store, signer, verifier, issuer: first.settings.issuer }),
    authFailures: { note: () => undefined },
    introspections: { note: () => undefined },
    throttle: makeThrottle(clock, first.fixed.limits),
    proofs: { verify: (_source, work) => work({ verify: verifyPath }) },
    signer,
    grantSigner: signer,
    signalSigner: signer,
    paths: { verify: verifyPath },
    bundles: { ...none, anchors: async function* () {} },
    issuers: none,
    clientKeys: none,
    fetchedKeys: { key: async () => err({ reason: "key_unknown" } as const) },
  };
  const secret = readFileSync(join(parent, "data/clients/nightly-report"), "utf8");
  const serve = app(ports, () => undefined);
  const post = (
    form: Record<string, string>,
    peer: Pick<Peer, "requestId" | "deadline">,
    handler = serve,
  ) => {
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      ...(form.client_assertion === undefined && { authorization: basic("nightly-report", secret) }),
    };
    const body = new URLSearchParams({ grant_type: "client_credentials", ...form });
    const request = new Request(`${issuer}/token`, { method: "POST", headers, body });
    return handler(request, { address: "192.0.2.1", certificates: [], ...peer });
  };
  const ask = (requestId: string, deadline: AbortSignal) => post({}, { requestId, deadline });
  for (let round = 0; round < 4; round++) {
    const answer = await ask(`r-${round}`, new AbortController().signal);
    assert.equal(answer.status, 200);
    // One read more for each round, so that rounds begin with either version.
    reads += 1;
  }
  const digests = new Map(
    versions.map(({ settings }, index) => [["one", "two"][index], settings.policy.digest]),
  );
  const events = (await store.log.read({ log: "app", limit: 10 })).map(({ body }) => JSON.parse(body));
  const decided = events.filter(({ type }) => type === "token.issued");
  assert.equal(decided.length, 4);
  for (const { policy } of decided) assert.equal(policy.digest, digests.get(policy.rule_id));

  await t.test("AUDIT-D-1 nothing is recorded for a request after its deadline", async () => {
    const late = new Error("late");
    await assert.rejects(async () => ask("late", AbortSignal.abort(late)), late);
    assert.equal((await store.log.read({ log: "app", limit: 10 })).length, events.length);
  });

  await t.test("RFC8725-3.10-v1 a request waits for an unknown key until its own deadline", async () => {
    const { signal: deadline } = new AbortController();
    const ends: unknown[] = [];
    const key: KeySource["key"] = async (_name, _header, until) => {
      ends.push(until?.deadline);
      return err("key_unknown");
    };
    const handler = app({ ...ports, bundles: { ...ports.bundles, key } }, () => undefined);
    const sub = "spiffe://dev.example/agents/planner";
    const client_assertion = await mintJwtSvid(await makeTrustDomain("dev.example"), { sub, aud: issuer });
    const form = { client_assertion_type: JWT_SPIFFE, client_assertion };
    assert.equal((await post(form, { requestId: "waits", deadline }, handler)).status, 400);
    assert.deepEqual(ends, [deadline]);
  });

  await t.test(
    "MCPC-D-21 the fetches of one request have one time together, and each request its own",
    async () => {
      const { signal: deadline } = new AbortController();
      const times: (AbortSignal | undefined)[] = [];
      const clientId = "https://agents.example/client.json";
      const { url: where, parsed } = supplied("https://agents.example/keys");
      const client: Client = {
        clientId,
        source: "metadata_document",
        auth: { method: "private_key_jwt", keySet: { url: where, parsed, privateNetworks: [] } },
        grantTypes: [],
      };
      const handler = app(
        {
          ...ports,
          clientDocuments: {
            find: async (_url, _source, until) => {
              times.push(until?.fetched);
              return ok(client);
            },
          },
          fetchedKeys: {
            key: async (_where, _header, _source, until) => {
              times.push(until?.fetched);
              return err({ reason: "key_unknown" });
            },
          },
        },
        () => undefined,
      );
      const form = bearer(clientId, await makeKey("k1"), { aud: issuer });
      for (const requestId of ["one", "two"]) {
        assert.equal(
          (await post(form as Record<string, string>, { requestId, deadline }, handler)).status,
          400,
        );
      }
      const [first, second, third, fourth] = times;
      assert.ok(first instanceof AbortSignal && third instanceof AbortSignal);
      assert.deepEqual([first === second, third === fourth, first === third], [true, true, false]);
    },
  );
});
