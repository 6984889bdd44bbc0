/**
 * Part three: two companies, each with its own server, trust domain and policy. An agent of the first takes a JWT
 * authorization grant to the second, whose token still names everyone who acted.
 */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defined } from "../../src/result.ts";
import { loadTrustDomain, mintJwtSvid, type TrustDomain } from "../dev-keys.ts";
import { makeProfile } from "../dev-profile.ts";
import { type Answer, claimsOf, type Form, postForm, send } from "../http-client.ts";
import { loadIdp } from "../idp.ts";
import { freePorts, startServer } from "../server-process.ts";
import { runOnHost } from "./host.ts";
import { check, part, print, printJson, printOutput, step } from "./output.ts";
import { makePlatformAgent, type PlatformAgent } from "./platform-agent.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const JWT_SPIFFE = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";
const JWT = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const DRAFTS = [
  "draft-ietf-oauth-identity-chaining-17",
  "draft-ietf-oauth-identity-assertion-authz-grant-04",
];
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const SCOPES = ["stays.read", "stays.book"];
const LEGACY = "https://legacy.example";
const PARTNER_ALIAS = "company-two";
const SHORT_SECONDS = 5;
const BY_JWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const RESEARCH = "research-agent";

type Config = {
  targets: object[];
  policies: object[];
  drafts: string[];
  trustDomains: object;
  trustedIssuers: object;
};

type Company = { folder: string; issuer: string; idpIssuer: string; ca: string; trustDomain: TrustDomain };

async function makeCompany(folder: string, trustDomain: string): Promise<Company> {
  const [port = 0, idpPort = 0] = await freePorts(2);
  const { issuer, idpIssuer } = await makeProfile(folder, { port, idpPort, trustDomain });
  return {
    folder,
    issuer,
    idpIssuer,
    ca: readFileSync(join(folder, "tls/ca.pem"), "utf8"),
    trustDomain: loadTrustDomain(join(folder, "trust-domain/authority.json")),
  };
}

function configure({ folder }: Company, change: (config: Config) => object): string {
  const file = join(folder, "config.json");
  const config: Config = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(
    file,
    JSON.stringify({ ...config, ...change(config), drafts: [...config.drafts, ...DRAFTS] }),
  );
  return file;
}

const workload = ({ trustDomain }: Company, path: string): string => `spiffe://${trustDomain.name}/${path}`;

/** Company one permits grants for company two, and impersonation grants for a legacy server that ignores `act`. */
function configureOne(one: Company, two: Company, platform: PlatformAgent): string {
  const booking = workload(one, "agents/booking");
  const forTravellers = {
    issues: "grant",
    actors: [booking],
    subjects: { issuers: [one.idpIssuer], subs: ["alice"] },
    subjectToken: { audiences: ["self"] },
    consent: "record",
  };
  return configure(one, ({ targets, policies, trustedIssuers }) => ({
    trustedIssuers: { ...trustedIssuers, ...platform.trusted },
    targets: [
      ...targets,
      { names: [RESEARCH], owners: ["platform://acme/*"], scopes: SCOPES },
      {
        kind: "partner",
        issuer: two.issuer,
        aliases: [PARTNER_ALIAS],
        scopes: SCOPES,
        clients: { [booking]: booking },
      },
      { kind: "partner", issuer: LEGACY, scopes: SCOPES, clients: { [booking]: "legacy-booking" } },
      { names: ["booking-for-two"], owners: [booking], scopes: SCOPES },
    ],
    policies: [
      ...policies,
      {
        id: "planner-to-booking-for-two",
        allow: "delegation",
        actors: [workload(one, "agents/planner")],
        subjects: forTravellers.subjects,
        subjectToken: { audiences: [one.issuer] },
        consent: "record",
        targets: ["booking-for-two", RESEARCH],
        scopes: SCOPES,
      },
      {
        id: "research-to-booking-for-two",
        allow: "delegation",
        actors: ["platform://acme/*"],
        subjects: forTravellers.subjects,
        subjectToken: forTravellers.subjectToken,
        consent: "record",
        targets: ["booking-for-two"],
        scopes: SCOPES,
      },
      {
        id: "booking-reads",
        allow: "delegation",
        ...forTravellers,
        targets: [two.issuer],
        scopes: ["stays.read"],
      },
      {
        id: "booking-short-lived",
        allow: "delegation",
        ...forTravellers,
        targets: [two.issuer],
        scopes: ["stays.book"],
        lifetimeSeconds: SHORT_SECONDS,
      },
      {
        id: "legacy-impersonation",
        allow: "impersonation",
        ...forTravellers,
        targets: [LEGACY],
        scopes: ["stays.read"],
      },
    ],
  }));
}

/** Company two trusts company one as an issuer of grants, and its trust domain for the clients that redeem them. */
function configureTwo(two: Company, one: Company): string {
  copyFileSync(join(one.folder, "trust-domain/bundle.json"), join(two.folder, "bundle-of-one.json"));
  copyFileSync(join(one.folder, "tls/ca.pem"), join(two.folder, "ca-of-one.pem"));
  const tool = workload(two, "tools/stays");
  const guests = {
    subjects: { issuers: [one.issuer] },
    consent: "implied",
    acknowledge: "subjects-not-asked",
  };
  return configure(two, ({ trustDomains, targets, policies }) => ({
    clockSkewSeconds: 0,
    trustDomains: { ...trustDomains, [one.trustDomain.name]: { bundle: { file: "bundle-of-one.json" } } },
    trustedIssuers: {
      [one.issuer]: {
        keys: { discover: true, ca: { file: "ca-of-one.pem" }, privateNetworks: LOOPBACK },
        acceptAs: [],
        subjects: { prefix: "one:" },
        grants: {},
      },
    },
    targets: [
      ...targets,
      { names: ["stays-tool"], owners: [tool], scopes: SCOPES },
      { names: ["https://rooms.two.example"], scopes: SCOPES },
    ],
    policies: [
      ...policies,
      {
        id: "guests-of-one",
        allow: "redemption",
        actors: [`spiffe://${one.trustDomain.name}/*`],
        ...guests,
        targets: ["stays-tool"],
        scopes: SCOPES,
      },
      {
        id: "tool-onward",
        allow: "delegation",
        actors: [tool],
        ...guests,
        subjectToken: { audiences: ["self"] },
        targets: ["https://rooms.two.example"],
        scopes: ["stays.read"],
      },
    ],
  }));
}

export async function playTwoCompanies(parent: string, closing: (() => unknown)[]): Promise<void> {
  const one = await makeCompany(join(parent, "one"), "one.example");
  const two = await makeCompany(join(parent, "two"), "two.example");
  const platform = await makePlatformAgent(one.folder, one.issuer);
  const files = [configureOne(one, two, platform), configureTwo(two, one)];
  const idp = await loadIdp(one.folder);
  // Company one starts first, because company two fetches its keys at the start.
  for (const file of files) {
    const server = await startServer(file);
    closing.push(() => server.stop());
  }

  const booking = workload(one, "agents/booking");
  const tool = workload(two, "tools/stays");
  const ask = (at: Company, form: Form, svid: string): Promise<Answer> => {
    const authenticated = { ...form, client_assertion_type: JWT_SPIFFE, client_assertion: svid };
    return postForm(`${at.issuer}/token`, authenticated, { ca: at.ca });
  };
  const svidFor = (at: Company, { trustDomain }: Company, sub: string): Promise<string> =>
    mintJwtSvid(trustDomain, { sub, aud: at.issuer });

  /** A token exchange at the caller's own company. Without an actor token it requests impersonation. */
  const exchange = async (
    at: Company,
    caller: string,
    subject: { token: unknown; type: string },
    wanted: { audience: string; scope: string; actor?: boolean },
  ): Promise<Answer> => {
    const svid = await svidFor(at, at, caller);
    const { audience, scope, actor = true } = wanted;
    const form = defined<Form>({
      grant_type: EXCHANGE,
      subject_token: String(subject.token),
      subject_token_type: subject.type,
      actor_token: actor ? svid : undefined,
      actor_token_type: actor ? JWT : undefined,
      audience,
      scope,
    });
    return ask(at, form, svid);
  };
  const redeem = async (
    assertion: unknown,
    { scope, by = booking }: { scope?: string; by?: string } = {},
  ): Promise<Answer> => {
    const form = defined<Form>({ grant_type: JWT_BEARER, assertion: String(assertion), scope });
    return ask(two, form, await svidFor(two, one, by));
  };

  part("Two companies: delegation across a border");

  step("alice → planner → booking (company one) → a tool of company two");
  print("Company two trusts grants of company one. Alice consents to the agents of company one as before.");
  for (const [actor, target] of [
    [workload(one, "agents/planner"), "booking-for-two"],
    [booking, PARTNER_ALIAS],
    [booking, LEGACY],
  ] as const) {
    const consent = { issuer: idp.issuer, subject: "alice", actor, target, scope: SCOPES.join(" ") };
    await runOnHost(one.folder, "consents add", consent);
  }
  const userToken = await idp.mintUserToken({ sub: "alice", aud: one.issuer, scope: SCOPES.join(" ") });
  const subject = { token: userToken, type: JWT };
  const planner = workload(one, "agents/planner");
  const toBooking = await exchange(one, planner, subject, {
    audience: "booking-for-two",
    scope: SCOPES.join(" "),
  });
  check(toBooking.status === 200, `the planner gets a token for booking: ${toBooking.text}`);
  const held = { token: toBooking.body.access_token, type: ACCESS_TOKEN };
  const granted = await exchange(one, booking, held, { audience: PARTNER_ALIAS, scope: "stays.read" });
  check(
    granted.status === 200 && granted.body.token_type === "N_A",
    `company one issues a grant for company two: ${granted.text}`,
  );
  const grant = granted.body.access_token;
  print(
    "Booking exchanges its token for a grant. It is not an access token: only company two (aud) accepts it, once, " +
      "within a minute, from this client:",
  );
  printJson(claimsOf(grant));

  const redeemed = await redeem(grant);
  check(redeemed.status === 200, `company two redeems it: ${redeemed.text}`);
  const there = claimsOf(redeemed.body.access_token);
  const chain = { sub: booking, iss: one.issuer, act: { sub: planner, iss: one.issuer } };
  check(
    JSON.stringify(there.act) === JSON.stringify(chain),
    "the token of company two names both agents of company one",
  );
  print("Company two redeems it for an access token for its own tool. Actors of company one carry its iss:");
  printJson(there);

  const arrived = { token: redeemed.body.access_token, type: ACCESS_TOKEN };
  const rooms = { audience: "https://rooms.two.example", scope: "stays.read" };
  const onward = await exchange(two, tool, arrived, rooms);
  check(onward.status === 200, `the tool exchanges its token: ${onward.text}`);
  print("The tool exchanges it again within company two. Three actors of two companies act for one user:");
  const { sub, act } = claimsOf(onward.body.access_token);
  printJson({ sub, act });

  const { jti } = claimsOf(grant);
  print(`The audit trails of both companies contain the grant, with its jti ${jti}.`);
  for (const [name, company] of [
    ["one", one],
    ["two", two],
  ] as const) {
    const lines = await runOnHost(company.folder, "audit", { jti: String(jti) });
    check(lines.includes(String(jti)) && lines.includes("agents/planner"), "the trail has the whole chain");
    print(`Company ${name}:`);
    printOutput(lines);
  }

  step("The same with an agent of a platform as the second hop");
  print(
    "The research agent is no workload of company one: a platform signs a JWT for it. Nothing is registered for it but " +
      "the platform; its name is that of the registration with its sub.",
  );
  const consents = [
    [planner, RESEARCH],
    [platform.id, "booking-for-two"],
  ];
  for (const [actor = "", target = ""] of consents) {
    const consent = { issuer: idp.issuer, subject: "alice", actor, target, scope: SCOPES.join(" ") };
    await runOnHost(one.folder, "consents add", consent);
  }
  const wanted = { audience: RESEARCH, scope: "stays.read" };
  const toResearch = await exchange(one, planner, subject, wanted);
  check(toResearch.status === 200, `the planner gets a token for the research agent: ${toResearch.text}`);
  const assertion = await platform.token();
  const byResearch = await postForm(
    `${one.issuer}/token`,
    {
      grant_type: EXCHANGE,
      client_assertion_type: BY_JWT,
      client_assertion: assertion,
      subject_token: String(toResearch.body.access_token),
      subject_token_type: ACCESS_TOKEN,
      actor_token: assertion,
      actor_token_type: JWT,
      audience: "booking-for-two",
    },
    { ca: one.ca },
  );
  check(byResearch.status === 200, `the research agent exchanges it: ${byResearch.text}`);
  const passed = { token: byResearch.body.access_token, type: ACCESS_TOKEN };
  const across = await exchange(one, booking, passed, { audience: PARTNER_ALIAS, scope: "stays.read" });
  const reached = await redeem(across.body.access_token);
  check(reached.status === 200, `company two redeems what came of it: ${reached.text}`);
  const { act: three } = claimsOf(reached.body.access_token);
  const earlier = { sub: platform.id, iss: one.issuer, act: { sub: planner, iss: one.issuer } };
  check(
    JSON.stringify(three) === JSON.stringify({ sub: booking, iss: one.issuer, act: earlier }),
    "company two sees all three, with the platform's agent between two workloads of company one",
  );
  printJson({ act: three });

  step("An impersonation grant for a partner whose server does not understand act");
  const plain = await exchange(one, booking, held, { audience: LEGACY, scope: "stays.read", actor: false });
  check(plain.status === 200, `a rule allows it: ${plain.text}`);
  check(claimsOf(plain.body.access_token).act === undefined, "the grant names no actor");
  printJson(claimsOf(plain.body.access_token));
  print("The audit trail of company one names the agents that the grant does not:");
  const last = { type: "token_exchange.impersonation", limit: "1" };
  printOutput(await runOnHost(one.folder, "audit", last));

  step("What company two refuses");
  const fresh = async (scope: string): Promise<unknown> =>
    (await exchange(one, booking, held, { audience: two.issuer, scope })).body.access_token;
  const short = await fresh("stays.book");
  const refuse = (what: string, { status, body }: Answer, error: string): void => {
    check(status >= 400 && body.error === error, `${what} is refused with ${error}: ${JSON.stringify(body)}`);
    print(`${what}: ${status} ${error}`);
  };
  refuse("The same grant a second time", await redeem(grant), "invalid_grant");
  refuse(
    "A grant presented by another client",
    await redeem(await fresh("stays.read"), { by: planner }),
    "invalid_grant",
  );
  refuse(
    "A scope that the grant does not have",
    await redeem(await fresh("stays.read"), { scope: "stays.book" }),
    "invalid_scope",
  );
  refuse("A grant for another server", await redeem(plain.body.access_token), "invalid_grant");
  refuse("An access token as a grant", await redeem(held.token), "invalid_grant");
  const asSubject = { token: await fresh("stays.read"), type: ACCESS_TOKEN };
  refuse(
    "A grant as the subject token of an exchange",
    await exchange(two, tool, asSubject, rooms),
    "invalid_request",
  );
  const asBearer = { authorization: `Bearer ${asSubject.token}` };
  const api = await send(`${two.issuer}/audit/events`, { ca: two.ca, headers: asBearer });
  refuse("A grant as an access token at the audit API", api, "invalid_token");
  await sleep(1000 * Number(claimsOf(short).exp) - Date.now());
  refuse("An expired grant", await redeem(short), "invalid_grant");
}
