/** What each of two instances begins and the other continues: exchanges of agents, and grants of users with refresh tokens. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  Browser,
  forPeople,
  LOOPBACK_REDIRECT,
  NOTES,
  PUBLIC,
  parametersOf,
  request,
  verifierOf,
} from "../../test/support/people.ts";
import type { TestProvider } from "../../test/support/provider.ts";
import {
  ACCESS_TOKEN,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  type Surroundings,
  workload,
} from "../../test/support/world.ts";
import { type Answer, basic, claimsOf, encodeForm, type Form, type Sent, send } from "../http-client.ts";

export const SECRET = "x7Qd-upgrade-k2Lm9-Zr4T-8vWb1-p5";
const PLANNER = workload("planner");
const BOOKING = workload("booking");
const scopes = ["trips.read"];

export type At = { port: number };

/** What was given and acknowledged. */
export type Kept = {
  /** Of its last access token. */
  jti: string;
  /** Whether this instance lets it continue. */
  stands(at: At): Promise<boolean>;
  /** Ended at this instance. */
  end(at: At): Promise<void>;
};

export type Journey = (first: At, second: At) => Promise<Kept>;

export function configurationFor(provider: TestProvider): object {
  const people = forPeople(provider);
  const agents = {
    id: "agents",
    allow: "delegation",
    subjects: { issuers: [IDP] },
    subjectToken: { audiences: [ISSUER, "self"] },
    actors: [PLANNER, BOOKING],
    targets: ["trips"],
    consent: "implied",
    acknowledge: "subjects-not-asked",
    scopes,
  };
  const own = {
    clients: { gate: { method: "client_secret_basic", secrets: [{ file: "secret" }] } },
    targets: [{ names: ["trips"], owners: [BOOKING], introspectors: ["gate"], scopes }],
    policies: [agents],
    limits: {
      requestsPerSecondByClient: 100_000,
      failuresPerMinuteByClient: 100_000,
      failuresPerMinuteBySource: 100_000,
    },
  };
  return {
    ...own,
    signIn: people.signIn,
    clients: { ...own.clients, [PUBLIC]: people.clients[PUBLIC] },
    targets: [...own.targets, ...people.targets],
    policies: [...own.policies, ...people.policies.map((rule) => ({ ...rule, refresh: true }))],
    limits: { ...own.limits, ...people.limits },
  };
}

export function openJourneys(
  { ca, idp, svid, as, issuer }: Surroundings,
  provider: TestProvider,
): readonly Journey[] {
  const ask = (at: At, path: string, sent: Partial<Sent> = {}): Promise<Answer> =>
    send(`${issuer}${path}`, { ...sent, ca, connect: { host: "127.0.0.1", port: at.port } });
  const post = (at: At, path: string, form: Form, headers = {}): Promise<Answer> =>
    ask(at, path, {
      method: "POST",
      body: encodeForm(form),
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });
  const good = ({ status, body, text }: Answer): Record<string, unknown> => {
    assert.equal(status, 200, text);
    return body;
  };
  const isGiven = ({ status, body, text }: Answer): boolean => {
    assert.ok(
      status === 200 || (status === 400 && /^invalid_/.test(String(body.error))),
      `${status} ${text}`,
    );
    return status === 200;
  };

  const exchange = (at: At, proof: string, subject: string, type: string): Promise<Answer> =>
    post(at, "/token", {
      ...as(proof),
      ...{ grant_type: EXCHANGE, audience: "trips", scope: scopes.join(" ") },
      ...{ subject_token: subject, subject_token_type: type, actor_token: proof, actor_token_type: JWT },
    });
  const chain: Journey = async (first, second) => {
    const user = await idp.mintUserToken({ sub: `u-${randomUUID()}`, aud: ISSUER, scope: scopes.join(" ") });
    const planner = String(good(await exchange(first, await svid("planner"), user, JWT)).access_token);
    const again = async (at: At) => exchange(at, await svid("booking"), planner, ACCESS_TOKEN);
    const booking = String(good(await again(second)).access_token);
    const gate = { authorization: basic("gate", SECRET) };
    return {
      jti: String(claimsOf(booking).jti),
      async stands(at) {
        const continues = isGiven(await again(at));
        const { active } = good(await post(at, "/introspect", { token: booking }, gate));
        assert.equal(active, continues, "introspection says what the exchange does");
        return continues;
      },
      async end(at) {
        good(await post(at, "/revoke", { ...as(await svid("planner")), token: planner }));
      },
    };
  };

  const grant: Journey = async (first, second) => {
    const verifier = verifierOf();
    const browser = new Browser({ issuer: ISSUER, get: (path, sent) => ask(first, path, sent) }, provider);
    const asked = request(verifier, { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT, resource: NOTES });
    const { code = "" } = parametersOf(
      await browser.decide(await browser.review(asked, `u-${randomUUID()}`)),
    );
    const byCode = { grant_type: "authorization_code", code, code_verifier: verifier };
    const redeemed = { ...byCode, client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
    let answer = good(await post(second, "/token", redeemed));
    const refresh = (at: At, token: unknown): Promise<Answer> =>
      post(at, "/token", { grant_type: "refresh_token", refresh_token: String(token), client_id: PUBLIC });
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const used = answer.refresh_token;
      answer = good(await refresh(one, used));
      // The same client did not get the answer, and three of its processes ask once more, elsewhere.
      for (let retry = 0; retry < 3; retry++) {
        const { refresh_token: next } = good(await refresh(other, used));
        assert.equal(next, answer.refresh_token, "a retry gets the same refresh token");
      }
    }
    return {
      jti: String(claimsOf(String(answer.access_token)).jti),
      async stands(at) {
        const next = await refresh(at, answer.refresh_token);
        const continues = isGiven(next);
        if (continues) answer = next.body;
        return continues;
      },
      async end(at) {
        good(await post(at, "/revoke", { client_id: PUBLIC, token: String(answer.refresh_token) }));
      },
    };
  };
  return [chain, grant];
}
