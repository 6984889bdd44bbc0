/**
 * Two companies, each with a server, a trust domain and a policy of its own. What a user of the first allowed its agent
 * crosses the border as a JWT authorization grant, and the second still sees who acts for whom.
 */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TrustDomain } from "../dev-pki.ts";
import { loadTrustDomain, mintJwtSvid } from "../dev-pki.ts";
import { makeProfile } from "../dev-profile.ts";
import type { Answer } from "../http-client.ts";
import { claimsOf, postForm, send } from "../http-client.ts";
import { startIdp } from "../idp.ts";
import { freePorts, startServer } from "../server-process.ts";
import { runOnHost } from "./story.ts";
import { must, scene, show, tell } from "./telling.ts";

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

type Config = { targets: object[]; policies: object[]; drafts: string[]; trustDomains: object };

type Company = { folder: string; issuer: string; idpIssuer: string; ca: string; trustDomain: TrustDomain };

async function found(folder: string, trustDomain: string): Promise<Company> {
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

/** Company one may send its booking agent to company two, and knows a legacy server that understands no `act`. */
function configureOne(one: Company, two: Company): string {
  const booking = workload(one, "agents/booking");
  const forTravellers = {
    issues: "grant",
    actors: [booking],
    subjects: { issuers: [one.idpIssuer], subs: ["alice"] },
    subjectToken: { audiences: ["self"] },
    consent: "record",
  };
  return configure(one, ({ targets, policies }) => ({
    targets: [
      ...targets,
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
        targets: ["booking-for-two"],
        scopes: SCOPES,
      },
      { id: "looking", allow: "delegation", ...forTravellers, targets: [two.issuer], scopes: ["stays.read"] },
      {
        id: "booking-is-urgent",
        allow: "delegation",
        ...forTravellers,
        targets: [two.issuer],
        scopes: ["stays.book"],
        lifetimeSeconds: SHORT_SECONDS,
      },
      { id: "no-trace", allow: "impersonation", ...forTravellers, targets: [LEGACY], scopes: ["stays.read"] },
    ],
  }));
}

/** Company two trusts the first as issuer of grants, and its trust domain for who redeems them. */
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

export async function tellOfTwoCompanies(parent: string, closing: (() => unknown)[]): Promise<void> {
  const one = await found(join(parent, "one"), "one.example");
  const two = await found(join(parent, "two"), "two.example");
  const files = [configureOne(one, two), configureTwo(two, one)];
  const idp = await startIdp(one.folder);
  closing.push(() => idp.close());
  // The second looks for the keys of the first as soon as it is there.
  for (const file of files) {
    const server = await startServer(file);
    closing.push(() => server.stop());
  }

  const booking = workload(one, "agents/booking");
  const tool = workload(two, "tools/stays");
  const ask = (at: Company, form: Record<string, string>, svid: string): Promise<Answer> => {
    const authenticated = { ...form, client_assertion_type: JWT_SPIFFE, client_assertion: svid };
    return postForm(`${at.issuer}/token`, authenticated, { ca: at.ca });
  };
  const svidFor = (at: Company, { trustDomain }: Company, sub: string): Promise<string> =>
    mintJwtSvid(trustDomain, { sub, aud: at.issuer });

  /** An exchange at the company of the caller; with `actor` false without a trace of him. */
  const exchange = async (
    at: Company,
    caller: string,
    subject: { token: unknown; type: string },
    wish: { audience: string; scope: string; actor?: boolean },
  ): Promise<Answer> => {
    const svid = await svidFor(at, at, caller);
    const { audience, scope, actor = true } = wish;
    return ask(
      at,
      {
        grant_type: EXCHANGE,
        subject_token: String(subject.token),
        subject_token_type: subject.type,
        ...(actor && { actor_token: svid, actor_token_type: JWT }),
        audience,
        scope,
      },
      svid,
    );
  };
  const redeem = async (assertion: unknown, { scope = "", by = booking } = {}): Promise<Answer> =>
    ask(
      two,
      { grant_type: JWT_BEARER, assertion: String(assertion), ...(scope !== "" && { scope }) },
      await svidFor(two, one, by),
    );

  scene("Two companies: alice → planner → booking of company one → a tool of company two");
  for (const [actor, target] of [
    [workload(one, "agents/planner"), "booking-for-two"],
    [booking, PARTNER_ALIAS],
    [booking, LEGACY],
  ] as const) {
    const consent = ["consent", "add", "--issuer", idp.issuer, "--subject", "alice", "--actor", actor];
    await runOnHost("admin.ts", one.folder, ...consent, "--target", target, "--scope", SCOPES.join(" "));
  }
  const userToken = await idp.mintUserToken({ sub: "alice", aud: one.issuer, scope: SCOPES.join(" ") });
  const subject = { token: userToken, type: JWT };
  const planner = workload(one, "agents/planner");
  const toBooking = await exchange(one, planner, subject, {
    audience: "booking-for-two",
    scope: SCOPES.join(" "),
  });
  must(toBooking.status === 200, `the planner asks booking: ${toBooking.text}`);
  const held = { token: toBooking.body.access_token, type: ACCESS_TOKEN };
  const granted = await exchange(one, booking, held, { audience: PARTNER_ALIAS, scope: "stays.read" });
  must(
    granted.status === 200 && granted.body.token_type === "N_A",
    `a grant for company two: ${granted.text}`,
  );
  const grant = granted.body.access_token;
  tell("The grant that booking takes across the border; it is no access token, and good for a minute:");
  show(claimsOf(grant));

  const redeemed = await redeem(grant);
  must(redeemed.status === 200, `company two redeems it: ${redeemed.text}`);
  const there = claimsOf(redeemed.body.access_token);
  const chain = { sub: booking, iss: one.issuer, act: { sub: planner, iss: one.issuer } };
  must(
    JSON.stringify(there.act) === JSON.stringify(chain),
    "both agents of company one are in the token of two",
  );
  tell("Company two's token for its own tool. Hops from elsewhere say so by their iss:");
  show(there);

  const arrived = { token: redeemed.body.access_token, type: ACCESS_TOKEN };
  const wish = { audience: "https://rooms.two.example", scope: "stays.read" };
  const onward = await exchange(two, tool, arrived, wish);
  must(onward.status === 200, `the tool goes on: ${onward.text}`);
  tell("And the tool goes on in its own company: three actors of two companies, one user.");
  show({ sub: claimsOf(onward.body.access_token).sub, act: claimsOf(onward.body.access_token).act });

  const { jti } = claimsOf(grant);
  tell(`Both audit trails know the grant by its jti, ${jti}. Company one:`);
  for (const company of [one, two]) {
    const lines = await runOnHost("admin.ts", company.folder, "audit", "--jti", String(jti));
    must(lines.includes(String(jti)) && lines.includes("agents/planner"), "the whole chain is in the trail");
    if (company === two) tell("Company two:");
    for (const line of lines.split("\n")) tell(line);
  }

  scene("A legacy server across the border knows no act: an impersonation grant");
  const plain = await exchange(one, booking, held, { audience: LEGACY, scope: "stays.read", actor: false });
  must(plain.status === 200, `a rule allows it: ${plain.text}`);
  must(claimsOf(plain.body.access_token).act === undefined, "nobody is in it but the user");
  show(claimsOf(plain.body.access_token));
  tell("The agents that it does not show are in the trail of company one:");
  tell(
    await runOnHost(
      "admin.ts",
      one.folder,
      "audit",
      "--type",
      "token_exchange.impersonation",
      "--limit",
      "1",
    ),
  );

  scene("What company two refuses");
  const fresh = async (scope: string): Promise<unknown> =>
    (await exchange(one, booking, held, { audience: two.issuer, scope })).body.access_token;
  const short = await fresh("stays.book");
  const refuse = (what: string, { status, body }: Answer, error: string): void => {
    must(status >= 400 && body.error === error, `${what} is refused with ${error}: ${JSON.stringify(body)}`);
    tell(`${what}: ${status} ${JSON.stringify(body)}`);
  };
  refuse("The same grant a second time", await redeem(grant), "invalid_grant");
  refuse(
    "A grant in the hands of another client",
    await redeem(await fresh("stays.read"), { by: planner }),
    "invalid_grant",
  );
  refuse(
    "More scope than the grant has",
    await redeem(await fresh("stays.read"), { scope: "stays.book" }),
    "invalid_scope",
  );
  refuse("A grant for somebody else", await redeem(plain.body.access_token), "invalid_grant");
  refuse("An access token as a grant", await redeem(held.token), "invalid_grant");
  const asSubject = { token: await fresh("stays.read"), type: ACCESS_TOKEN };
  refuse(
    "A grant as an access token, in an exchange",
    await exchange(two, tool, asSubject, wish),
    "invalid_request",
  );
  const asBearer = { authorization: `Bearer ${asSubject.token}` };
  const api = await send(`${two.issuer}/audit/events`, { ca: two.ca, headers: asBearer });
  refuse("A grant as an access token, at a protected endpoint", api, "invalid_token");
  await sleep((SHORT_SECONDS + 1) * 1000);
  refuse("A grant that is too old", await redeem(short), "invalid_grant");
}
