/**
 * The requests to measure, prepared before the measurement. Each scenario has a call for each of several users, so
 * that caching one answer cannot improve the result.
 */
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { decodeJwt } from "jose";
import * as v from "valibot";
import { CLIENT_CREDENTIALS } from "../../src/spec/rfc6749.ts";
import { ACCESS_TOKEN, JWT, TOKEN_EXCHANGE } from "../../src/spec/rfc8693.ts";
import { JWT_SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { loadTrustDomain, mintJwtSvid } from "../dev-pki.ts";
import type { Call } from "./client.ts";
import { makeCall, post } from "./client.ts";
import type { Stage } from "./stage.ts";

export const SCENARIOS = ["secret", "svid", "delegation", "three-hop"] as const;
export type Scenario = (typeof SCENARIOS)[number];

const USERS = Array.from({ length: 16 }, (_, index) => `traveller-${index}`);
const CLIENT_ID = "nightly-report";
const PLANNER = "spiffe://dev.example/agents/planner";
const BOOKING = "spiffe://dev.example/agents/booking";
const CREW = "spiffe://dev.example/crew/desk";
const API = "https://api.example";
const SCOPE = "trips.read";
const SVID_SECONDS = 3_000;

const Answer = v.object({ access_token: v.string() });
type Act = { sub?: string; act?: Act };

/** The actors in the issued token, current actor first. */
const ACTORS: Record<Scenario, readonly string[]> = {
  secret: [],
  svid: [],
  delegation: [PLANNER],
  "three-hop": [CREW, BOOKING, PLANNER],
};

export type Prepared = {
  /** The calls of a scenario, one of which was sent and its token checked. Subject tokens in them expire after 300 s. */
  calls(scenario: Scenario): Promise<readonly Call[]>;
  close(): void;
};

export async function prepare(stage: Stage): Promise<Prepared> {
  const { profile, caFile, issuer, idp } = stage;
  const agent = new Agent({ keepAlive: true, ca: readFileSync(caFile) });
  const endpoint = new URL(`${issuer}/token`);
  const trustDomain = loadTrustDomain(join(profile, "trust-domain", "authority.json"));
  const secret = readFileSync(join(profile, "clients", CLIENT_ID), "utf8");
  const targets = ["booking-agent", "crew-desk", API];
  await stage.addConsents(
    USERS.flatMap((sub) =>
      [PLANNER, BOOKING, CREW].map((actor) => ({
        origin: { iss: idp.issuer, sub },
        actor,
        targets,
        scopes: [SCOPE],
      })),
    ),
  );

  const svid = (sub: string) => mintJwtSvid(trustDomain, { sub, aud: issuer, expSeconds: SVID_SECONDS });
  const svids = { planner: await svid(PLANNER), booking: await svid(BOOKING), crew: await svid(CREW) };
  const bySvid = (assertion: string) => ({
    client_assertion_type: JWT_SPIFFE,
    client_assertion: assertion,
  });
  const exchange = (actor: string, subject: string, type: string, audience: string) =>
    makeCall({
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
    const { status, body } = await post(agent, endpoint, call);
    if (status !== 200) throw new Error(`answered ${status}: ${body}`);
    return v.parse(Answer, JSON.parse(body)).access_token;
  };

  const make: Record<Scenario, (user: string) => Promise<Call>> = {
    async secret() {
      const basic = Buffer.from(`${CLIENT_ID}:${secret}`).toString("base64");
      return makeCall({ grant_type: CLIENT_CREDENTIALS, scope: SCOPE }, `Basic ${basic}`);
    },
    async svid() {
      const assertion = await svid(PLANNER);
      return makeCall({ grant_type: CLIENT_CREDENTIALS, ...bySvid(assertion), audience: API, scope: SCOPE });
    },
    async delegation(user) {
      return exchange(svids.planner, await userToken(user), JWT, API);
    },
    async "three-hop"(user) {
      const first = await issue(exchange(svids.planner, await userToken(user), JWT, "booking-agent"));
      const second = await issue(exchange(svids.booking, first, ACCESS_TOKEN, "crew-desk"));
      return exchange(svids.crew, second, ACCESS_TOKEN, API);
    },
  };

  return {
    async calls(scenario) {
      const calls = await Promise.all(USERS.map(make[scenario]));
      const [first] = calls;
      if (first === undefined) throw new Error("a benchmark without users");
      const actors = actorsOf(await issue(first));
      if (actors.join() !== ACTORS[scenario].join()) {
        throw new Error(`${scenario}: the actors in the token are ${actors.join() || "none"}`);
      }
      return calls;
    },
    close: () => agent.destroy(),
  };
}

function actorsOf(accessToken: string): string[] {
  const actors: string[] = [];
  for (let act = decodeJwt<{ act?: Act }>(accessToken).act; act !== undefined; act = act.act) {
    actors.push(act.sub ?? "");
  }
  return actors;
}
