/**
 * `asking` of src/http/developers.md, as printed there, at a server where agents may wait: it polls with the code until
 * the user has decided. The pauses of the program move the clock of the server.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { send } from "../../scripts/http-client.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { DRAFT } from "../../src/spec/deferred-token-response.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { answerLink } from "../support/deferral.ts";
import { layPrograms, NO_PYTHON, type Programs } from "../support/developers.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, makeWorld, TRUST_DOMAIN, type World, workload } from "../support/world.ts";

const API = "https://api.example";

let provider: TestProvider;
let world: World;
let page: Programs;
let issuer: string;

before(async () => {
  provider = await startProvider();
  const [port = 0] = await freePorts(1);
  issuer = `https://localhost:${port}`;
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  world = await makeWorld(
    {
      ...{ issuer, drafts: [SPIFFE_DRAFT, DRAFT] },
      listen: { host: "127.0.0.1", port, drainSeconds: 0, tls },
      trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
      trustedIssuers: provider.trusted({ acceptAs: ["jwt"], scopes: ["trips.read"] }),
      signIn: { providers: { company: provider.provider() } },
      targets: [{ names: [API], scopes: ["trips.read"] }],
      policies: [
        {
          ...{ id: "agents-for-users", allow: "delegation", actors: [workload("agents/*")] },
          ...{ subjects: { issuers: [provider.issuer] }, subjectToken: { audiences: [issuer] } },
          ...{ consent: "record", askUser: true, targets: [API], scopes: ["trips.read"] },
        },
      ],
    },
    { files: { "provider.pem": provider.ca }, clock: true },
  );
  page = layPrograms(join(world.folder, "programs"));
});
after(() => stop(page, world, provider));

/** Each says where the user can allow it, how long it pauses until a line lets it go on, and the outcome. */
const waiting = {
  ts: `import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { asking, onBehalfOf } from "./agent.ts";
let count = 0;
const pause = async (ms) => {
  console.log("pause " + ms / 1000);
  for (const file = process.env.GO + count++; !existsSync(file); ) await sleep(10);
};
const request = () => onBehalfOf(process.env.USER_TOKEN, "${API}", "trips.read", "jwt");
await asking(request, (url) => console.log("show " + url), pause).then(
  (token) => console.log("token " + token.access_token),
  (fault) => console.log("fault " + fault.answer.error),
);`,
  py: `import os, time
from agent import Refused, asking, on_behalf_of
count = 0
def pause(seconds):
    global count
    print("pause", seconds, flush=True)
    while not os.path.exists(os.environ["GO"] + str(count)):
        time.sleep(0.01)
    count += 1
request = lambda: on_behalf_of(os.environ["USER_TOKEN"], "${API}", "trips.read", "jwt")
try:
    print("token", asking(request, lambda url: print("show", url, flush=True), pause)["access_token"], flush=True)
except Refused as refused:
    print("fault", refused.answer["error"], flush=True)`,
};

const languages = [
  ["TypeScript", "ts", false],
  ["Python", "py", NO_PYTHON],
] as const;

for (const [language, ending, skip] of languages) {
  for (const decision of ["allow", "refuse"] as const) {
    test(`DTR-6.5-1, DTR-D-9 the agent in ${language} waits with a code for a user who chooses to ${decision}, slower where it was too fast`, {
      skip,
    }, async () => {
      const user = `${decision}-${ending}`;
      writeFileSync(join(page.folder, `waiting.${ending}`), waiting[ending]);
      const svidFile = join(page.folder, `${user}.jwt`);
      writeFileSync(svidFile, await world.svid(`agents/${user}`, { aud: issuer }));
      const ca = join(world.folder, "tls/ca.pem");
      const { next } = page.run(`waiting.${ending}`, {
        ...{ ISSUER: issuer, SVID_FILE: svidFile, NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca },
        ...{ USER_TOKEN: await provider.userToken(user, issuer, { scope: "trips.read" }) },
        ...{ GO: join(page.folder, `go-${user}-`) },
      });
      const goOn = (count: number) => writeFileSync(join(page.folder, `go-${user}-${count}`), "");
      const link = /^show (\S+)$/.exec(await next())?.[1] ?? assert.fail();
      assert.equal(await next(), "pause 10");
      goOn(0);
      assert.equal(await next(), "pause 10");
      // It polls again at once, and is told to slow down.
      goOn(1);
      assert.equal(await next(), "pause 15");
      const get: World["get"] = (path, options) => send(issuer + path, { ca: world.ca, ...options });
      await answerLink({ ...world, get, issuer }, provider, link, decision, user);
      world.pass(15);
      goOn(2);
      const [what, value = ""] = (await next()).split(" ");
      if (decision === "refuse") assert.deepEqual([what, value], ["fault", "access_denied"]);
      else assert.deepEqual([what, claimsOf(value).sub], ["token", `company:${user}`]);
    });
  }
}

test("DTR-6.5-1 an answer without an interval leaves the agent in TypeScript with its own pause", async () => {
  const program = `import { asking, Refused } from "./agent.ts";
const answer = { error: "interaction_required", error_uri: "https://as.example/ask", deferral_code: "a" };
const request = () => Promise.reject(new Refused(answer));
await asking(request, () => {}, (ms) => {
  console.log("pause " + ms / 1000);
  return Promise.reject(new Error("enough"));
}).catch(({ message }) => console.log(message));`;
  writeFileSync(join(page.folder, "no-interval.ts"), program);
  const { next } = page.run("no-interval.ts", { ISSUER: issuer });
  assert.deepEqual([await next(), await next()], ["pause 3", "enough"]);
});
