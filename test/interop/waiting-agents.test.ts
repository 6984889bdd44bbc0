/** A library that we did not write waits for a user: its grants alone, in a loop as a program would have it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as openid from "openid-client";
import { PLANNER, TRIPS } from "../support/asking-agents.ts";
import { answerLink, forDeferral } from "../support/deferral.ts";
import { files } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { fetchAt } from "../support/web.ts";
import { claimsOf, ISSUER, JWT, makeWorld, type World } from "../support/world.ts";

const GRANT = "urn:ietf:params:oauth:grant-type";

/** The token of an exchange; `show` is told where the user can allow it. */
async function exchange(
  config: openid.Configuration,
  form: Record<string, string>,
  show: (link: string) => void,
  pause: (ms: number) => Promise<void>,
): Promise<openid.TokenEndpointResponse> {
  let [grant, requested] = [`${GRANT}:token-exchange`, { ...form, completion_mode: "deferred" } as object];
  for (let seconds = 10; ; await pause(seconds * 1000)) {
    try {
      return await openid.genericGrantRequest(config, grant, requested as Record<string, string>);
    } catch (fault) {
      const answer = fault instanceof openid.ResponseBodyError ? fault.cause : { error: "" };
      if (answer.error !== "interaction_required") throw fault;
      if (answer.deferral_code === undefined) continue;
      show(String(answer.interaction_uri));
      seconds = Number(answer.interval);
      [grant, requested] = [`${GRANT}:deferred`, { deferral_code: String(answer.deferral_code) }];
    }
  }
}

let provider: TestProvider;
let world: World;

before(async () => {
  provider = await startProvider();
  world = await makeWorld(forDeferral(provider), { files: files(provider), clock: true });
});
after(() => stop(world, provider));

/** The library as the planner, and its exchange of a token of this user. */
async function asPlanner(user: string) {
  const svid = await world.svid("agents/planner");
  const proves: openid.ClientAuth = (_server, _client, body) => {
    for (const [name, value] of Object.entries(world.as(svid))) body.set(name, String(value));
  };
  const fetch = fetchAt({ [new URL(ISSUER).host]: { ca: world.ca, port: world.server.port } });
  const config = await openid.discovery(new URL(ISSUER), PLANNER, undefined, proves, {
    algorithm: "oauth2",
    [openid.customFetch]: fetch as openid.CustomFetch,
  });
  const form = {
    subject_token: await provider.userToken(user, ISSUER, { scope: TRIPS.join(" ") }),
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    audience: "booking-agent",
    scope: "trips.read",
  };
  return { config, form };
}

for (const decision of ["allow", "refuse"] as const) {
  test(`DTR-6.5-1, PROD-9.2-6 openid-client polls until the user has decided, who chooses to ${decision}`, async () => {
    const user = `anna-${decision}`;
    const { config, form } = await asPlanner(user);
    assert.equal(config.serverMetadata().deferred_token_response_supported, true);
    const shown: string[] = [];
    const pauses: number[] = [];
    const waiting = exchange(
      config,
      form,
      (link) => shown.push(link),
      async (ms) => {
        pauses.push(ms);
        world.pass(ms / 1000);
        if (pauses.length === 3) await answerLink(world, provider, shown[0] ?? "", decision, user);
      },
    );
    if (decision === "allow") {
      const { access_token: token } = await waiting;
      assert.equal(claimsOf(token).sub, `company:${user}`);
    } else {
      await assert.rejects(waiting, (fault: openid.ResponseBodyError) => fault.error === "access_denied");
    }
    assert.equal(shown.length, 1);
    assert.deepEqual(pauses, [10_000, 10_000, 10_000]);
  });
}
