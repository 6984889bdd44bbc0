/** One company: a secret, a workload identity, three hops of delegation, an impersonation, a refusal, and the trail. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { loadTrustDomain, mintJwtSvid } from "../dev-pki.ts";
import type { Answer } from "../http-client.ts";
import { basic, claimsOf, postForm, send } from "../http-client.ts";
import type { RunningIdp } from "../idp.ts";
import { must, scene, show, tell } from "./telling.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_SPIFFE = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";
const JWT = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const TRAVELLER = "alice";
const API = "https://api.example";
const PATIENCE_MS = 20_000;
const PAUSE_MS = 1_000;

export type Stage = {
  folder: string;
  issuer: string;
  idp: RunningIdp;
  /** Whether nobody has consented to anything here yet. */
  fresh: boolean;
};

/** A server that was there before its identity provider looks for the keys every few seconds. */
async function patiently(attempt: () => Promise<Answer>): Promise<Answer> {
  const untilMs = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await attempt();
    if (answer.status === 200 || Date.now() > untilMs) return answer;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** One command of the administrator, on the host. */
export async function runOnHost(script: string, folder: string, ...words: string[]): Promise<string> {
  const file = join(import.meta.dirname, "..", script);
  const run = promisify(execFile)(process.execPath, [
    file,
    "--config",
    join(folder, "config.json"),
    ...words,
  ]);
  return (await run).stdout.trimEnd();
}

export async function tellStory({ folder, issuer, idp, fresh }: Stage): Promise<void> {
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const trustDomain = loadTrustDomain(join(folder, "trust-domain/authority.json"));

  const admin = (...words: string[]): Promise<string> => runOnHost("admin.ts", folder, ...words);
  const workload = (path: string): string => `spiffe://${trustDomain.name}/${path}`;
  const svidOf = (path: string): Promise<string> =>
    mintJwtSvid(trustDomain, { sub: workload(path), aud: issuer });
  const token = (form: Record<string, string>, headers: Record<string, string> = {}) =>
    postForm(`${issuer}/token`, form, { ca, headers });

  /** The exchange of one agent; with `actor` false it leaves out the actor token and asks to impersonate. */
  const exchange = async (
    agent: string,
    subject: { token: unknown; type: string },
    audience: string,
    { actor = true, scope = "" } = {},
  ) => {
    const svid = await svidOf(agent);
    return token({
      grant_type: EXCHANGE,
      subject_token: String(subject.token),
      subject_token_type: subject.type,
      ...(actor && { actor_token: svid, actor_token_type: JWT }),
      client_assertion_type: JWT_SPIFFE,
      client_assertion: svid,
      audience,
      ...(scope !== "" && { scope }),
    });
  };

  scene("What the server offers");
  const metadata = await send(`${issuer}/.well-known/oauth-authorization-server`, { ca });
  must(metadata.status === 200 && metadata.body.issuer === issuer, "the metadata names the issuer");
  show(metadata.body);

  scene("A secret becomes a token (client credentials)");
  const secret = readFileSync(join(folder, "clients/nightly-report"), "utf8");
  const bySecret = await token(
    { grant_type: "client_credentials" },
    { authorization: basic("nightly-report", secret) },
  );
  must(bySecret.status === 200, "the secret is taken");
  must(claimsOf(bySecret.body.access_token).sub === "nightly-report", "the token is the client's own");
  show(claimsOf(bySecret.body.access_token));

  scene("A workload identity becomes a token: no secret, no registration");
  const planner = workload("agents/planner");
  const bySvid = await token({
    grant_type: "client_credentials",
    client_assertion_type: JWT_SPIFFE,
    client_assertion: await svidOf("agents/planner"),
  });
  must(bySvid.status === 200, "the JWT-SVID is taken");
  must(claimsOf(bySvid.body.access_token).client_id === planner, "the SPIFFE ID is the client");
  show(claimsOf(bySvid.body.access_token));

  scene(`${TRAVELLER} → planner → booking → crew: three hops, and the trail is kept`);
  const userToken = await idp.mintUserToken({ sub: TRAVELLER, aud: issuer, scope: "trips.read trips.book" });
  tell(`${TRAVELLER}'s token, from the identity provider ${idp.issuer}:`);
  show(claimsOf(userToken));

  const early = await exchange("agents/planner", { token: userToken, type: JWT }, "booking-agent");
  if (fresh) {
    must(early.status === 400, "without consent there is no delegation");
    tell(`Before ${TRAVELLER} has consented, the planner gets nothing: ${JSON.stringify(early.body)}`);
  }
  const hops = [
    ["agents/planner", "booking-agent"],
    ["agents/booking", "crew-desk"],
    ["crew/ana", API],
  ] as const;
  for (const [agent, target] of hops) {
    await admin(
      "consent",
      "add",
      "--issuer",
      idp.issuer,
      "--subject",
      TRAVELLER,
      "--actor",
      workload(agent),
      "--target",
      target,
      "--scope",
      "trips.read trips.book",
    );
    tell(`${TRAVELLER} consents: ${workload(agent)} may act at ${target}.`);
  }

  let carried: { token: unknown; type: string } = { token: userToken, type: JWT };
  let beforeLast = carried;
  for (const [agent, target] of hops) {
    const subject = carried;
    const answer = await patiently(() => exchange(agent, subject, target));
    must(answer.status === 200, `${agent} may act: ${answer.text}`);
    beforeLast = carried;
    carried = { token: answer.body.access_token, type: ACCESS_TOKEN };
    tell(`${agent} → ${target}: sub and act of its token`);
    const { sub, act } = claimsOf(carried.token);
    show({ sub, act });
  }
  const final = claimsOf(carried.token);
  const expected = {
    sub: workload("crew/ana"),
    act: { sub: workload("agents/booking"), act: { sub: planner } },
  };
  must(final.sub === TRAVELLER, "the subject is kept through all hops");
  must(JSON.stringify(final.act) === JSON.stringify(expected), "three actors, the caller outermost");
  tell("The outermost actor holds the token now; the deepest was the first. The whole token:");
  show(final);

  scene("Impersonation: the same journey, but the last token shows no agent");
  const plain = await exchange("crew/ana", beforeLast, API, { actor: false, scope: "trips.read" });
  must(plain.status === 200, `a rule allows it: ${plain.text}`);
  const plainClaims = claimsOf(plain.body.access_token);
  must(plainClaims.act === undefined && plainClaims.sub === TRAVELLER, "sub alone is left");
  show(plainClaims);
  tell("Who was behind it is in the audit trail, found by this token's jti:");
  const lineage = await admin("audit", "--jti", String(plainClaims.jti));
  must(
    lineage.includes(planner) && lineage.includes("agents/booking"),
    "the dropped agents are in the trail",
  );
  for (const line of lineage.split("\n")) tell(line);

  scene("A refusal: a stranger holds a stolen token and a perfectly valid identity");
  const stolen = await exchange("agents/stranger", { token: userToken, type: JWT }, API);
  must(stolen.status === 400 && stolen.body.error === "invalid_request", "the stranger is refused");
  tell("The stranger learns:");
  show(stolen.body);
  const denied = await admin("audit", "--type", "token_exchange.denied", "--limit", "1");
  must(denied.includes("agents/stranger") && denied.includes("no_rule"), "the trail has the reason");
  tell("The auditor learns:");
  tell(denied);

  scene("The audit trail: one line for each decision, each chained to the one before");
  const trail = await admin("audit", "--limit", "12");
  for (const line of trail.split("\n")) tell(line);
  const verified = await admin("audit", "verify");
  for (const line of verified.split("\n")) tell(line);
}
