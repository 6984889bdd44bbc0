/** Sign-in providers that do not answer: after some failures users are told at once, provider by provider, for a while. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { issueServerCertificate, makeAuthority } from "../../../scripts/dev-pki.ts";
import { random } from "../../../src/adapters/crypto/random.ts";
import type { FetchResult } from "../../../src/adapters/remote/fetch-timer.ts";
import {
  EARLY_LOOK_SECONDS,
  KEPT_CONNECTION_SECONDS,
  KEPT_CONNECTIONS_MAX,
  KEPT_LOST_MS,
} from "../../../src/limits/fetching.ts";
import { PAUSE_FAILURES_MAX, PAUSE_MS, PAUSE_SLOW_MS } from "../../../src/limits/people.ts";
import { deriveProviderKey } from "../../../src/people/adapters/provider-keys.ts";
import { openProviders } from "../../../src/people/adapters/providers.ts";
import type { Provider } from "../../../src/settings/settings.ts";
import { inTime } from "../../support/in-time.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";
import { until } from "../../support/until.ts";
import { LOOPBACK } from "../../support/web.ts";

type Mode = "answers" | "cuts" | "silent" | "hints";

/**
 * `mode`: what it does with each request; `asked`: the paths. One that is silent keeps its requests; one that hints says
 * that an answer comes, and breaks the connection.
 */
async function startSite(t: TestContext) {
  const authority = await makeAuthority("Authority of a provider");
  const { keyPem: key, certPem: cert } = await issueServerCertificate(authority, ["localhost"]);
  const site = {
    ...{ issuer: "", ca: authority.certPem, mode: "answers" as Mode },
    subjects: ["public"],
    tokenEndpoint: "",
  };
  const [asked, kept] = [[] as string[], [] as ServerResponse[]];
  const answer = (path: string, response: ServerResponse): void => {
    const { issuer } = site;
    const endpoints = {
      authorization_endpoint: `${issuer}/login`,
      token_endpoint: site.tokenEndpoint || `${issuer}/token`,
    };
    const metadata = {
      issuer,
      ...endpoints,
      jwks_uri: `${issuer}/jwks`,
      subject_types_supported: site.subjects,
    };
    const body = path === "/token" ? { error: "invalid_grant" } : metadata;
    response.writeHead(path === "/token" ? 400 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  let connections = 0;
  const server = createServer({ key, cert }, (request, response) => {
    asked.push(request.url ?? "");
    if (site.mode === "cuts") request.destroy();
    else if (site.mode === "silent") kept.push(response);
    else if (site.mode === "hints")
      response.writeEarlyHints({ link: "</style.css>; rel=preload" }, () => request.destroy());
    else answer(request.url ?? "", response);
  });
  // What ends a connection is to be the other side.
  server.keepAliveTimeout = 0;
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  site.issuer = `https://localhost:${(server.address() as AddressInfo).port}`;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    ...{ asked, kept, answer, site },
    connections: () => connections,
    live: () => promisify(server.getConnections).call(server),
    closeIdle: () => server.closeIdleConnections(),
  };
}

async function open(t: TestContext, mode: "answers" | "cuts") {
  const [one, two] = [await startSite(t), await startSite(t)];
  one.site.mode = mode;
  const time = makeTime(0);
  const timers = makeTimers();
  const [pairwise, failures]: [string[], string[]] = [[], []];
  const providers = openProviders({
    ...{ clock: time.clock, timers, random, encryptionKeys: [randomBytes(32)] },
    ...{
      onFetch: (_: string, { failure = "none" }: FetchResult) => void failures.push(failure),
      onPairwise: (name: string) => void pairwise.push(name),
    },
  });
  t.after(() => providers.stop());
  const settings = (name: string, { site: { issuer, ca } }: typeof one): [string, Provider] => [
    name,
    {
      ...{
        name,
        issuer,
        title: name,
        clientId: "us",
        idTokenAlg: "ES256",
        scopes: [],
        acr: [],
        recheck: "refresh",
      },
      ...{ ca, privateNetworks: LOOPBACK, auth: { method: "client_secret_post", secret: "s" } },
    },
  ];
  providers.configure(new Map([settings("one", one), settings("two", two)]));
  const asked = { code: "c", verifier: "v", redirectUri: "https://as.example/callback/one" };
  const reasonOf = async (answer: Promise<{ ok: true } | { ok: false; error: { reason: string } }>) => {
    const got = await answer;
    return got.ok ? "ok" : got.error.reason;
  };
  const redeem = (name = "one") => reasonOf(providers.redeem(name, asked));
  return {
    ...{ one, two, time, timers, pairwise, failures },
    close: () => providers.configure(new Map()),
    /** From now on the provider of this name is at this site. */
    move: (name: string, site: typeof one) => providers.configure(new Map([settings(name, site)])),
    begin: (name = "one") => reasonOf(providers.metadata(name)),
    redeem,
    /** The provider keeps the request for a while, and then breaks the connection. */
    async waitInVain() {
      one.site.mode = "silent";
      const asking = redeem();
      await until(() => one.kept.length === 1, "it is asked");
      time.nowMs += PAUSE_SLOW_MS;
      one.kept.pop()?.destroy();
      return asking;
    },
    pass(ms: number) {
      time.nowMs += ms;
      timers.pass(ms);
    },
  };
}

const [DOWN, REFUSED] = ["provider_unavailable", "provider_refused"];
const tokens = (asked: readonly string[]): number => asked.filter((path) => path === "/token").length;

test("CONF-D-1 after three redemptions that waited in vain users are told at once, and the provider is not asked, for 30 s", async (t) => {
  const { one, begin, redeem, waitInVain, pass } = await open(t, "answers");
  assert.equal(await redeem(), REFUSED);
  for (let failures = 0; failures < PAUSE_FAILURES_MAX; failures++) {
    assert.equal(await begin(), "ok", "its metadata are known");
    assert.equal(await waitInVain(), DOWN);
  }
  const before = one.asked.length;
  for (let times = 0; times < 10; times++) assert.deepEqual([await begin(), await redeem()], [DOWN, DOWN]);
  assert.equal(one.asked.length, before);
  assert.deepEqual([await begin("two"), await redeem("two")], ["ok", REFUSED], "another one is asked");
  pass(PAUSE_MS - 1);
  assert.equal(await begin(), DOWN);
});

test("a provider's refusal is logged with its status and its own error", async (t) => {
  const { redeem, failures } = await open(t, "answers");
  assert.equal(await redeem(), REFUSED);
  assert.equal(failures.at(-1), "the status is 400, and its error invalid_grant");
});

test("after the pause one request tries the provider, and the others are told at once until it has its answer", async (t) => {
  const { one, begin, redeem, waitInVain, pass } = await open(t, "answers");
  assert.equal(await begin(), "ok");
  for (let failures = 0; failures < PAUSE_FAILURES_MAX; failures++) await waitInVain();
  pass(PAUSE_MS);
  assert.equal(await waitInVain(), DOWN, "the one that tries fails");
  assert.equal(await begin(), DOWN, "so the pause begins anew");
  pass(PAUSE_MS);
  one.site.mode = "silent";
  const before = tokens(one.asked);
  const trying = redeem();
  await until(() => one.kept.length === 1, "it is asked");
  assert.deepEqual(await Promise.all([redeem(), redeem(), begin()]), [DOWN, DOWN, DOWN]);
  assert.equal(tokens(one.asked), before + 1);
  one.site.mode = "answers";
  const [kept] = one.kept;
  assert.ok(kept);
  one.answer("/token", kept);
  assert.equal(await trying, REFUSED, "an error of the provider is an answer");
  assert.deepEqual([await begin(), await redeem()], ["ok", REFUSED]);
});

test("codes for which the provider breaks the connection at once, such as those of an attacker, keep no one else out", async (t) => {
  const { one, begin, redeem } = await open(t, "answers");
  assert.equal(await begin(), "ok");
  one.site.mode = "cuts";
  for (let failures = 0; failures < 2 * PAUSE_FAILURES_MAX; failures++) assert.equal(await redeem(), DOWN);
  one.site.mode = "answers";
  assert.deepEqual([await begin(), await redeem()], ["ok", REFUSED]);
});

test("CONF-D-1 a provider whose metadata never came is asked by three users, then by none; the first copy ends the pause", async (t) => {
  const { one, begin, pass } = await open(t, "cuts");
  for (let failures = 0; failures < PAUSE_FAILURES_MAX; failures++) {
    const asking = begin();
    let ended = false;
    void asking.finally(() => {
      ended = true;
    });
    await until(() => {
      pass(1_000 * EARLY_LOOK_SECONDS);
      return ended;
    }, "it was looked for");
    assert.equal(await asking, DOWN);
  }
  assert.equal(await inTime(begin(), "it is told"), DOWN);
  one.site.mode = "answers";
  assert.equal(await begin(), DOWN);
  // The next poll, which is not that of a user, comes long before the end of the pause.
  pass(1_000 * EARLY_LOOK_SECONDS);
  await until(async () => (await begin()) === "ok", "it is known");
});

test("CONF-D-2 a provider whose metadata list no public subjects is used, and that is told", async (t) => {
  const { one, begin, pairwise } = await open(t, "answers");
  one.site.subjects = ["pairwise"];
  assert.deepEqual([await begin(), await begin("two"), pairwise], ["ok", "ok", ["one"]]);
});

test("CONF-D-4 the key toward a provider is that of key-encryption key and provider on every instance, and of no other", () => {
  const [key, other] = [randomBytes(32), randomBytes(32)];
  const kidOf = (from: Uint8Array, name: string) => deriveProviderKey(from, name).publicJwk.kid;
  assert.equal(kidOf(key, "one"), kidOf(Uint8Array.from(key), "one"));
  assert.equal(new Set([kidOf(key, "one"), kidOf(key, "two"), kidOf(other, "one")]).size, 3);
});

test("sign-ins use one connection to the provider, for a minute; one that the provider closed is opened anew, and no sign-in fails for it", async (t) => {
  const { one, redeem, pass } = await open(t, "answers");
  await redeem();
  const before = one.connections();
  for (let times = 0; times < 3; times++) assert.equal(await redeem(), REFUSED);
  assert.equal(one.connections(), before);
  pass(KEPT_CONNECTION_SECONDS * 1000);
  assert.equal(await redeem(), REFUSED);
  assert.equal(await redeem(), REFUSED);
  assert.equal(one.connections(), before + 1);
  // Closed while the next request is on its way.
  one.closeIdle();
  assert.equal(await redeem(), REFUSED);
  assert.equal(one.connections(), before + 2);
  assert.equal(tokens(one.asked), 7);
});

test("two sign-ins at a time have a connection each, and the connections end with the provider's settings", async (t) => {
  const { one, redeem, close } = await open(t, "answers");
  await redeem();
  const before = one.connections();
  assert.deepEqual(await Promise.all([redeem(), redeem()]), [REFUSED, REFUSED]);
  assert.equal(one.connections(), before + 1);
  assert.equal(await one.live(), 2);
  close();
  await until(async () => (await one.live()) === 0, "the connections have ended");
});

test("of the connections of many sign-ins at a time a few are kept, and the others end", async (t) => {
  const { one, redeem } = await open(t, "answers");
  await redeem();
  one.site.mode = "silent";
  const askAtOnce = async (times: number): Promise<void> => {
    const asking = Array.from({ length: times }, () => redeem());
    await until(() => one.kept.length === times, "all are asked");
    for (const response of one.kept.splice(0)) one.answer("/token", response);
    await Promise.all(asking);
  };
  await askAtOnce(2 * KEPT_CONNECTIONS_MAX);
  await until(async () => (await one.live()) === KEPT_CONNECTIONS_MAX, "the others have ended");
  const before = one.connections();
  await askAtOnce(KEPT_CONNECTIONS_MAX);
  assert.equal(one.connections(), before);
});

test("a connection that was used again late in its minute is not used after it", async (t) => {
  const { one, redeem, pass } = await open(t, "answers");
  await redeem();
  const before = one.connections();
  pass(KEPT_CONNECTION_SECONDS * 1000 - 1);
  assert.deepEqual([await redeem(), one.connections()], [REFUSED, before]);
  pass(1);
  assert.deepEqual([await redeem(), one.connections()], [REFUSED, before + 1]);
});

test("other settings of a provider cut no sign-in that is under way, and its connection ends with it", async (t) => {
  const { one, redeem, close } = await open(t, "answers");
  await redeem();
  one.site.mode = "silent";
  const asking = [redeem(), redeem()];
  await until(() => one.kept.length === 2, "both are asked, one by the connection that was kept");
  close();
  for (const response of one.kept) one.answer("/token", response);
  assert.deepEqual(await Promise.all(asking), [REFUSED, REFUSED]);
  await until(async () => (await one.live()) === 0, "the connections have ended");
});

test("a code is sent once where the provider has begun to answer on a kept connection and breaks it", async (t) => {
  const { one, redeem } = await open(t, "answers");
  await redeem();
  one.site.mode = "hints";
  const before = tokens(one.asked);
  assert.equal(await redeem(), DOWN);
  assert.equal(tokens(one.asked), before + 1);
});

test("a code is sent once where the provider has had it for a second and breaks a kept connection", async (t) => {
  const { one, redeem, time } = await open(t, "answers");
  await redeem();
  one.site.mode = "silent";
  const before = tokens(one.asked);
  const asking = redeem();
  await until(() => one.kept.length === 1, "it is asked");
  time.nowMs += KEPT_LOST_MS;
  one.kept.pop()?.destroy();
  assert.equal(await asking, DOWN);
  assert.equal(tokens(one.asked), before + 1);
});

test("a token endpoint on another origin than the issuer's is asked within what is open to all alone", async (t) => {
  const { one, two, redeem } = await open(t, "answers");
  one.site.tokenEndpoint = `${two.site.issuer}/token`;
  assert.equal(await redeem(), DOWN);
  assert.deepEqual([tokens(one.asked), tokens(two.asked), two.connections() > 1], [0, 0, false]);
});

test("after a reload a provider with the same settings has its connection, and one with others is asked by those", async (t) => {
  const { one, two, redeem, move } = await open(t, "answers");
  await redeem();
  const [before, asked] = [one.connections(), tokens(one.asked)];
  move("one", one);
  assert.deepEqual([await redeem(), one.connections(), tokens(one.asked)], [REFUSED, before, asked + 1]);
  move("one", two);
  assert.equal(await redeem(), REFUSED);
  assert.deepEqual([tokens(one.asked), tokens(two.asked)], [asked + 1, 1]);
});
