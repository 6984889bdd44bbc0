/** Part one: client authentication, a delegation of three hops, an impersonation, a refusal, an ending, a user who leaves, the audit trail. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defined } from "../../src/result.ts";
import { loadTrustDomain, mintJwtSvid } from "../dev-keys.ts";
import { type Answer, basic, claimsOf, type Form, postForm, send } from "../http-client.ts";
import type { Idp } from "../idp.ts";
import { playAccount } from "./account.ts";
import { playAskUser, WHY } from "./ask-user.ts";
import { runOnHost } from "./host.ts";
import { playJob } from "./job.ts";
import { playLeaving } from "./leaving.ts";
import { check, part, print, printJson, printOutput, step } from "./output.ts";
import { playPeople } from "./people.ts";
import { type Exchange, playStolenToken } from "./stolen-token.ts";
import type { ToldApi } from "./told-api.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_SPIFFE = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";
const JWT = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
/** Its audience. */
export const API = "https://api.example";
const SCOPE = "trips.read trips.book";
const RETRY_FOR_MS = 20_000;
const RETRY_EVERY_MS = 1_000;

export type Stage = {
  folder: string;
  issuer: string;
  idp: Idp;
  /** Whether the server is new, so that no consent has been recorded. */
  fresh: boolean;
  /** The API of the demo, where the server has a stream to it; without it, alice stays. */
  api?: ToldApi;
};

/** Retries, because a server that was started before its identity provider fetches its keys every few seconds. */
async function retry(attempt: () => Promise<Answer>): Promise<Answer> {
  const untilMs = Date.now() + RETRY_FOR_MS;
  for (;;) {
    const answer = await attempt();
    if (answer.status === 200 || Date.now() > untilMs) return answer;
    await new Promise((resolve) => setTimeout(resolve, RETRY_EVERY_MS));
  }
}

export async function playOneCompany({ folder, issuer, idp, fresh, api }: Stage): Promise<void> {
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const trustDomain = loadTrustDomain(join(folder, "trust-domain/authority.json"));

  const workload = (path: string): string => `spiffe://${trustDomain.name}/${path}`;
  const svidOf = (path: string): Promise<string> =>
    mintJwtSvid(trustDomain, { sub: workload(path), aud: issuer });
  const token = (form: Form, headers: Record<string, string> = {}) =>
    postForm(`${issuer}/token`, form, { ca, headers });

  /** A token exchange by one agent. Without an actor token it requests impersonation. */
  const exchange: Exchange = async (
    agent,
    subject,
    audience,
    { actor = true, scope, proof, reason, jobRequest } = {},
  ) => {
    const svid = await svidOf(agent);
    return token(
      defined<Form>({
        grant_type: EXCHANGE,
        client_assertion_type: JWT_SPIFFE,
        client_assertion: svid,
        subject_token: String(subject.token),
        subject_token_type: subject.type,
        actor_token: actor ? svid : undefined,
        actor_token_type: actor ? JWT : undefined,
        audience,
        scope,
        mandate_reason: reason,
        mandate_job_request: jobRequest,
      }),
      proof === undefined ? {} : { dpop: proof },
    );
  };

  /** What a resource server learns when it asks whether a token is active. */
  const introspect = (asked: unknown, form: Form, headers: Record<string, string> = {}): Promise<Answer> =>
    postForm(`${issuer}/introspect`, { token: String(asked), ...form }, { ca, headers });
  const introspectAsApi = (asked: unknown): Promise<Answer> => {
    const own = readFileSync(join(folder, "clients/trips-api"), "utf8");
    return introspect(asked, {}, { authorization: basic("trips-api", own) });
  };

  part("One company: who acts for whom");

  step("A client reads what the server offers");
  const metadata = await send(`${issuer}/.well-known/oauth-authorization-server`, { ca });
  check(metadata.status === 200 && metadata.body.issuer === issuer, "the metadata names the issuer");
  const { token_endpoint, grant_types_supported, token_endpoint_auth_methods_supported } = metadata.body;
  printJson({ issuer, token_endpoint, grant_types_supported, token_endpoint_auth_methods_supported });

  step("A program authenticates with a secret and gets an access token for itself");
  const secret = readFileSync(join(folder, "clients/nightly-report"), "utf8");
  const bySecret = await token(
    { grant_type: "client_credentials" },
    { authorization: basic("nightly-report", secret) },
  );
  check(bySecret.status === 200, "the secret is accepted");
  check(claimsOf(bySecret.body.access_token).sub === "nightly-report", "the token names the client");
  print("These are the claims of the token:");
  printJson(claimsOf(bySecret.body.access_token));

  step("A workload authenticates with its SPIFFE identity: no secret, no registration");
  const planner = workload("agents/planner");
  const bySvid = await token({
    grant_type: "client_credentials",
    client_assertion_type: JWT_SPIFFE,
    client_assertion: await svidOf("agents/planner"),
  });
  check(bySvid.status === 200, "the JWT-SVID is accepted");
  check(claimsOf(bySvid.body.access_token).client_id === planner, "the SPIFFE ID is the client_id");
  printJson(claimsOf(bySvid.body.access_token));

  step("Delegation: alice → planner → booking → crew. The last token names all of them");
  print("Alice signed in at her identity provider and has this token. It names her in sub:");
  const userToken = await idp.mintUserToken({ sub: "alice", aud: issuer, scope: SCOPE });
  printJson(claimsOf(userToken));

  const early = await exchange("agents/planner", { token: userToken, type: JWT }, "booking-agent");
  if (fresh) {
    check(early.status === 400, "there is no delegation without consent");
    print("The planner wants to act for her, but she has not consented. The server refuses:");
    printJson(early.body);
    const reason = await runOnHost(folder, "audit", { type: "token_exchange.denied", limit: "1" });
    check(reason.includes("consent_missing"), "the audit trail has the reason");
    print("The reason is in the audit trail only: consent_missing");
  }
  print("Alice consents to each agent, for one target each (npm run mandate -- consents add):");
  const hops = [
    ["agents/planner", "booking-agent"],
    ["agents/booking", "crew-desk"],
    ["crew/ana", API],
  ] as const;
  for (const [agent, target] of hops) {
    const consent = { issuer: idp.issuer, subject: "alice", actor: workload(agent), target, scope: SCOPE };
    await runOnHost(folder, "consents add", consent);
    print(`  ${agent} may act for alice at ${target}`);
  }

  print("Each agent exchanges the token it received for a new one, and adds itself as the actor (act):");
  let carried: { token: unknown; type: string } = { token: userToken, type: JWT };
  let beforeLast = carried;
  let first: unknown;
  for (const [agent, target] of hops) {
    const subject = carried;
    const answer = await retry(() => exchange(agent, subject, target));
    check(answer.status === 200, `${agent} may act: ${answer.text}`);
    beforeLast = carried;
    carried = { token: answer.body.access_token, type: ACCESS_TOKEN };
    first ??= carried.token;
    const { sub, act } = claimsOf(carried.token);
    print(`${agent} gets a token for ${target}:`);
    printJson({ sub, act });
  }
  const final = claimsOf(carried.token);
  const expected = {
    sub: workload("crew/ana"),
    act: { sub: workload("agents/booking"), act: { sub: planner } },
  };
  check(final.sub === "alice", "the subject is the same after every hop");
  check(
    JSON.stringify(final.act) === JSON.stringify(expected),
    "the token names three actors, the caller first",
  );
  print(
    "sub is the person the token speaks for. The outermost act is the program that holds the token; " +
      "the innermost act is the one that acted first. The complete last token:",
  );
  printJson(final);

  step("Impersonation: the same last hop without an actor token. The new token names alice alone");
  print(
    "Only a rule that allows impersonation permits this. The API that receives the token cannot see the agents:",
  );
  const plain = await exchange("crew/ana", beforeLast, API, { actor: false, scope: "trips.read" });
  check(plain.status === 200, `a rule allows impersonation: ${plain.text}`);
  const plainClaims = claimsOf(plain.body.access_token);
  check(plainClaims.act === undefined && plainClaims.sub === "alice", "the token has sub but no act");
  printJson(plainClaims);
  print(
    "The audit trail still names them. npm run mandate -- audit --jti finds this token and its ancestors:",
  );
  const lineage = await runOnHost(folder, "audit", { jti: String(plainClaims.jti) });
  check(
    lineage.includes(planner) && lineage.includes("agents/booking"),
    "the trail names the omitted agents",
  );
  printOutput(lineage);

  step("Refusal: an agent with a valid identity and a stolen token, but without a rule that allows it");
  const stolen = await exchange("agents/thief", { token: userToken, type: JWT }, API);
  check(stolen.status === 400 && stolen.body.error === "invalid_request", "the exchange is refused");
  print("The agent gets no reason:");
  printJson(stolen.body);
  const denied = await runOnHost(folder, "audit", { type: "token_exchange.denied", limit: "1" });
  check(denied.includes("agents/thief") && denied.includes("no_rule"), "the trail has the reason");
  print("The operator finds it in the audit trail. The reason is no_rule:");
  printOutput(denied);

  await playStolenToken({
    tokenEndpoint: String(token_endpoint),
    exchange,
    userToken: (claims) =>
      idp.mintUserToken({ sub: "alice", aud: issuer, scope: SCOPE, claims: { ...claims } }),
    lastDenied: () => runOnHost(folder, "audit", { type: "token_exchange.denied", limit: "1" }),
  });

  await playPeople({
    issuer,
    ca,
    exchangeAsBooking: (allowed) => {
      const subject = { token: allowed, type: ACCESS_TOKEN };
      return exchange("agents/booking", subject, "crew-desk", { scope: "trips.read" });
    },
  });

  const exchangeForBob = async (agent: string): Promise<Answer> => {
    const token = await idp.mintUserToken({ sub: "bob", aud: issuer, scope: SCOPE });
    return exchange(agent, { token, type: JWT }, "booking-agent", { reason: WHY });
  };
  const agent = await playAskUser({ issuer, ca, exchangeForBob });
  await playAccount({ issuer, ca, agent, exchangeForBob });
  await playJob({
    issuer,
    ca,
    workload,
    exchange: async (by, target, { token, jobRequest }) => {
      const ofBob = await idp.mintUserToken({ sub: "bob", aud: issuer, scope: SCOPE });
      const subject = token === undefined ? { token: ofBob, type: JWT } : { token, type: ACCESS_TOKEN };
      return exchange(by, subject, target, defined({ jobRequest }));
    },
    mandate: (command) => runOnHost(folder, command),
  });

  step("Stop this agent: one command ends every token that passed through the booking agent");
  const booking = workload("agents/booking");
  const before = await introspectAsApi(carried.token);
  check(before.body.active === true, `the API is told that the token is active: ${before.text}`);
  print("The API that received the last token may ask whether it is still valid (POST /introspect):");
  const { active, sub, client_id } = before.body;
  printJson({ active, sub, client_id });
  print("The operator looks first (npm run mandate -- tokens end --actor … --dry-run), then ends:");
  const preview = await runOnHost(folder, "tokens end --dry-run", { actor: booking });
  check(
    preview.includes(String(final.jti)),
    "the dry run lists the token of crew/ana, below the booking agent",
  );
  printOutput(await runOnHost(folder, "tokens end", { actor: booking }));
  const stopped = await introspectAsApi(carried.token);
  check(stopped.text === '{"active":false}', "the token of crew/ana is not active any more");
  print("The API asks again. It learns no reason:");
  printJson(stopped.body);
  const onward = await exchange("crew/ana", beforeLast, API);
  check(onward.status === 400, "crew/ana cannot exchange what it got from the booking agent");
  const bySvidOfOwner = {
    client_assertion_type: JWT_SPIFFE,
    client_assertion: await svidOf("agents/booking"),
  };
  const above = await introspect(first, bySvidOfOwner);
  check(
    above.body.active === true,
    `the token of the planner, above the booking agent, stands: ${above.text}`,
  );
  print("The planner's token, which is above that of the booking agent, is still valid.");

  if (api !== undefined) {
    const consent = { issuer: idp.issuer, subject: "bob", actor: workload("crew/ana"), target: API };
    await runOnHost(folder, "consents add", { ...consent, scope: SCOPE });
    await playLeaving({
      ...{ issuer, ca, idp, api, introspectAsApi },
      exchangeFor: async (sub) => {
        const token = await idp.mintUserToken({ sub, aud: issuer, scope: SCOPE });
        return exchange("crew/ana", { token, type: JWT }, API);
      },
      mandate: (command, options) => runOnHost(folder, command, options),
    });
  }

  step("The audit trail: one event for each decision, each linked to the one before by its hash");
  printOutput(await runOnHost(folder, "audit", { limit: "4" }));
  print("npm run mandate -- audit verify:");
  printOutput(await runOnHost(folder, "audit verify"));
}
