/** The requests to measure, prepared before the measurement. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import * as v from "valibot";
import { CLIENT_CREDENTIALS } from "../../src/spec/rfc6749.ts";
import { ACCESS_TOKEN, JWT, TOKEN_EXCHANGE } from "../../src/spec/rfc8693.ts";
import { JWT_SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { loadTrustDomain, mintJwtSvid } from "../dev-keys.ts";
import { type Call, fieldOf, Line, makeCall, makeGet } from "./client.ts";
import type { Side, Stage } from "./stage.ts";

/**
 * "delegation" brings a new SVID and a new subject token with each request; "delegation-warm" the same ones again, for
 * each of several users.
 */
const TOKENS = ["secret", "svid", "delegation", "delegation-warm", "three-hop"] as const;
type TokenScenario = (typeof TOKENS)[number];

/** "callback": the end of a sign-in, with an ID token from the stand-in provider in each request. */
export const SCENARIOS = [...TOKENS, "introspection", "metadata", "jwks", "callback"] as const;
export type Scenario = (typeof SCENARIOS)[number];

const isToken = (scenario: Scenario): scenario is TokenScenario => TOKENS.some((one) => one === scenario);

const USERS = Array.from({ length: 16 }, (_, index) => `traveller-${index}`);
const CLIENT_ID = "nightly-report";
const RESOURCE_SERVER = "trips-api";
const PLANNER = "spiffe://dev.example/agents/planner";
const BOOKING = "spiffe://dev.example/agents/booking";
const CREW = "spiffe://dev.example/crew/desk";
const API = "https://api.example";
const SCOPE = "trips.read";
const SVID_SECONDS = 3_000;

const Issued = v.object({ access_token: v.string() });
type Act = { sub?: string; act?: Act };

/** The actors in the issued token, current actor first. */
const ACTORS: Record<TokenScenario, readonly string[]> = {
  secret: [],
  svid: [],
  delegation: [PLANNER],
  "delegation-warm": [PLANNER],
  "three-hop": [CREW, BOOKING, PLANNER],
};

export type Prepared = {
  /** One for a client's own token, of which none was sent yet. */
  first(): Promise<Call>;
  /**
   * Calls of a scenario to this server, of which one was sent to the stage and its token checked; `count` different
   * ones where each request brings new tokens. Subject tokens in them expire after 300 s.
   */
  calls(scenario: Scenario, count: number, side?: Side): Promise<readonly Call[]>;
  /** For a client that authenticates, and asks for a scope that no rule gives it: answered with 400. */
  refused(): Promise<Call>;
};

/** `users`: those for whom consents are recorded. */
export async function prepare(stage: Stage, users: readonly string[] = USERS): Promise<Prepared> {
  const { profile, issuer, idp } = stage;
  const trustDomain = loadTrustDomain(join(profile, "trust-domain", "authority.json"));
  const basicOf = (client: string): string => {
    const secret = readFileSync(join(profile, "clients", client), "utf8");
    return `Basic ${Buffer.from(`${client}:${secret}`).toString("base64")}`;
  };
  const targets = ["booking-agent", "crew-desk", API];
  await stage.addConsents(
    users.flatMap((sub) =>
      [PLANNER, BOOKING, CREW].map((actor) => ({
        origin: { iss: idp.issuer, sub },
        actor,
        targets,
        scopes: [SCOPE],
      })),
    ),
  );

  const svid = (sub: string, claims = {}) =>
    mintJwtSvid(trustDomain, { sub, aud: issuer, expSeconds: SVID_SECONDS, claims });
  const svids = { planner: await svid(PLANNER), booking: await svid(BOOKING), crew: await svid(CREW) };
  const bySvid = (assertion: string) => ({
    client_assertion_type: JWT_SPIFFE,
    client_assertion: assertion,
  });
  const exchange = (url: URL, actor: string, subject: string, type: string, audience: string) =>
    makeCall(url, {
      grant_type: TOKEN_EXCHANGE,
      ...bySvid(actor),
      subject_token: subject,
      subject_token_type: type,
      actor_token: actor,
      actor_token_type: JWT,
      audience,
      scope: SCOPE,
    });
  const userToken = (sub: string) => idp.mintUserToken({ sub, aud: issuer, scope: SCOPE });

  const issue = async (call: Call): Promise<string> => {
    const line = new Line(stage.endpoint);
    const { status, body } = await line.send(call);
    line.close();
    if (status !== 200) throw new Error(`answered ${status}: ${body}`);
    return v.parse(Issued, JSON.parse(body)).access_token;
  };

  const bySecret = (url: URL, scope: string): Call =>
    makeCall(url, { grant_type: CLIENT_CREDENTIALS, scope }, basicOf(CLIENT_ID));
  const make: Record<TokenScenario, (url: URL, user: string) => Promise<Call>> = {
    secret: async (url) => bySecret(url, SCOPE),
    async svid(url) {
      const assertion = await svid(PLANNER);
      const by = bySvid(assertion);
      return makeCall(url, { grant_type: CLIENT_CREDENTIALS, ...by, audience: API, scope: SCOPE });
    },
    async delegation(url, user) {
      return exchange(url, await svid(PLANNER, { jti: randomUUID() }), await userToken(user), JWT, API);
    },
    async "delegation-warm"(url, user) {
      return exchange(url, svids.planner, await userToken(user), JWT, API);
    },
    async "three-hop"(url, user) {
      const first = await issue(exchange(url, svids.planner, await userToken(user), JWT, "booking-agent"));
      const second = await issue(exchange(url, svids.booking, first, ACCESS_TOKEN, "crew-desk"));
      return exchange(url, svids.crew, second, ACCESS_TOKEN, API);
    },
  };

  const others: Record<Exclude<Scenario, TokenScenario>, (count: number) => Promise<readonly Call[]>> = {
    async introspection() {
      const token = await issue(bySecret(stage.url, SCOPE));
      return [makeCall(new URL("introspect", stage.url), { token }, basicOf(RESOURCE_SERVER))];
    },
    metadata: async () => [makeGet(new URL(".well-known/oauth-authorization-server", stage.url))],
    jwks: async () => [makeGet(new URL("jwks", stage.url))],
    callback: (count) => makeCallbacks(stage, count),
  };

  return {
    first: () => make.secret(stage.url, ""),
    refused: async () => bySecret(stage.url, "trips.book"),
    async calls(scenario, count, { url } = stage) {
      if (!isToken(scenario)) return others[scenario](count);
      const actors = actorsOf(await issue(await make[scenario](stage.url, USERS[0] ?? "")));
      if (actors.join() !== ACTORS[scenario].join()) {
        throw new Error(`${scenario}: the actors in the token are ${actors.join() || "none"}`);
      }
      const users =
        scenario === "delegation"
          ? Array.from({ length: count }, (_, index) => USERS[index % USERS.length] ?? "")
          : USERS;
      return Promise.all(users.map((user) => make[scenario](url, user)));
    },
  };
}

function actorsOf(accessToken: string): string[] {
  const actors: string[] = [];
  for (let act = decodeJwt<{ act?: Act }>(accessToken).act; act !== undefined; act = act.act) {
    actors.push(act.sub ?? "");
  }
  return actors;
}

/** Each of a user of its own, whose browser has been to the stand-in provider. */
async function makeCallbacks({ url, endpoint, idp }: Stage, count: number): Promise<readonly Call[]> {
  const [here, there] = [
    new Line(endpoint),
    new Line({ ...endpoint, port: Number(new URL(idp.issuer).port) }),
  ];
  const calls: Call[] = [];
  while (calls.length < count) {
    const begun = await here.send(makeGet(new URL("signin", url)));
    const asked = new URL(fieldOf(begun, "location"));
    asked.searchParams.set("user", `traveller-${calls.length}`);
    const answered = await there.send(makeGet(asked));
    calls.push(makeGet(new URL(fieldOf(answered, "location")), fieldOf(begun, "set-cookie")));
  }
  here.close();
  there.close();
  return calls;
}
