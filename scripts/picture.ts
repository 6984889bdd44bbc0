/**
 * `scripts/node scripts/picture.ts` draws the picture of README.md: alice's work goes through three agents, and each
 * exchange narrows what the next one holds. Every figure and claim in it is from tokens that a real server issued.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOnHost } from "./demo/host.ts";
import { loadTrustDomain, mintJwtSvid } from "./dev-keys.ts";
import { makeProfile } from "./dev-profile.ts";
import { claimsOf, postForm } from "./http-client.ts";
import { loadIdp } from "./idp.ts";
import { freePorts, startServer } from "./server-process.ts";

export const FILE = join(import.meta.dirname, "../.github/delegation.svg");

const JWT = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const API = "https://api.example";
const BOTH = "trips.read trips.book";
/** Each agent, for which target it gets a token, and how far the rule for that target goes. */
const HOPS = [
  { agent: "agents/planner", target: "booking-agent", scopes: BOTH, lifetimeSeconds: 240 },
  { agent: "agents/booking", target: "crew-desk", scopes: BOTH, lifetimeSeconds: 120 },
  { agent: "crew/ana", target: API, scopes: "trips.read", lifetimeSeconds: 60 },
] as const;

type Claims = ReturnType<typeof claimsOf>;

/** The claims of alice's token, and of each that comes of it. */
async function playChain(folder: string): Promise<readonly Claims[]> {
  const [port = 0, idpPort = 0] = await freePorts(2);
  const { configFile, issuer } = await makeProfile(folder, { port, idpPort });
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  const like = config.policies.find(({ id }: { id: string }) => id === "crew-for-travellers");
  config.policies = HOPS.map(({ target, scopes, lifetimeSeconds }) => ({
    ...like,
    id: `for-${target.replace("https://", "")}`,
    targets: [target],
    scopes: scopes.split(" "),
    lifetimeSeconds,
  }));
  writeFileSync(configFile, JSON.stringify(config));
  const idp = await loadIdp(folder);
  const domain = loadTrustDomain(join(folder, "trust-domain/authority.json"));
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const server = await startServer(configFile);
  try {
    let carried = { token: await idp.mintUserToken({ sub: "alice", aud: issuer, scope: BOTH }), type: JWT };
    const claims = [claimsOf(carried.token)];
    for (const { agent, target, scopes } of HOPS) {
      const actor = `spiffe://${domain.name}/${agent}`;
      const consent = { issuer: idp.issuer, subject: "alice", actor, target, scope: scopes };
      await runOnHost(folder, "consents add", consent);
      const svid = await mintJwtSvid(domain, { sub: actor, aud: issuer });
      const { status, body, text } = await postForm(
        `${issuer}/token`,
        {
          grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
          client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
          client_assertion: svid,
          subject_token: carried.token,
          subject_token_type: carried.type,
          actor_token: svid,
          actor_token_type: JWT,
          audience: target,
        },
        { ca },
      );
      if (status !== 200) throw new Error(`${agent} gets no token for ${target}: ${text}`);
      carried = { token: String(body.access_token), type: ACCESS_TOKEN };
      claims.push(claimsOf(carried.token));
    }
    // The ports of this run, under the name that a server has in documents.
    const text = JSON.stringify(claims).replaceAll(issuer, "https://as.example");
    return JSON.parse(text.replaceAll(idp.issuer, "https://idp.example"));
  } finally {
    await server.stop();
  }
}

// --- the drawing ------------------------------------------------------------------------------------------------

const STYLE = `
  rect { fill: #fff; stroke: #57606a; }
  .sheet { stroke: #d0d7de; }
  .token { fill: #f6f8fa; stroke: #d0d7de; }
  text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .name { font-weight: 600; text-anchor: middle; }
  .small { font-size: 12px; fill: #57606a; text-anchor: middle; }
  .held { font-size: 13px; text-anchor: middle; }
  .code { font: 13px ui-monospace, SFMono-Regular, Menlo, monospace; white-space: pre; }
  .new { font-weight: 600; fill: #0a4b8c; }
  path { fill: none; stroke: #57606a; stroke-width: 1.5; marker-end: url(#end); }
`;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const write = (x: number, y: number, kind: string, text: string): string =>
  `<text class="${kind}" x="${x}" y="${y}" xml:space="preserve">${escaped(text)}</text>`;
const box = (x: number, y: number, [width, height]: readonly [number, number], kind = ""): string =>
  `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"/>`;

const WIDTH = 760;
const STEP = 190;
const [BOX_WIDTH, BOX_HEIGHT] = [150, 56];
const CODE_TOP = 236;
const LINE = 19;

const PARTIES = [
  ["alice", "a person, signed in"],
  ["planner", "the agent she asked"],
  ["booking", "an agent it asked"],
  ["crew", "an agent that one asked"],
] as const;

function draw(claims: readonly Claims[]): string {
  const parts: string[] = [];
  for (const [index, [name, says]] of PARTIES.entries()) {
    const { scope, iat, exp } = claims[index] ?? {};
    const x = 20 + index * STEP;
    const middle = x + BOX_WIDTH / 2;
    parts.push(box(x, 20, [BOX_WIDTH, BOX_HEIGHT]));
    parts.push(write(middle, 44, "name", name), write(middle, 63, "small", says));
    if (index > 0) parts.push(`<path d="M${x - STEP + BOX_WIDTH + 4} 48 H${x - 6}"/>`);
    const from = index === 0 ? "her provider's token" : "its own token";
    parts.push(write(middle, 104, "small", `${from}, ${Number(exp) - Number(iat)} s`));
    for (const [row, one] of String(scope).split(" ").entries())
      parts.push(write(middle, 126 + row * 18, "held", one));
  }
  parts.push(
    write(
      20,
      184,
      "",
      "Each agent exchanges the token that it received for its own. What crew sends to the API:",
    ),
  );
  const { iss, sub, act, aud, scope, exp, iat } = claims.at(-1) ?? {};
  const { act: before, ...holder } = act as { sub: string; act: { sub: string; act: object } };
  const { act: first, ...middle } = before;
  const lines = [
    ["", `"iss": "${iss}", "aud": "${aud}",`],
    ["new", `"sub": "${sub}",`, "for whom"],
    ["new", `"act": { "sub": "${holder.sub}",`, "who holds it now, and alone counts"],
    ["new", `  "act": { "sub": "${middle.sub}",`, "who asked that agent"],
    [
      "new",
      `    "act": ${JSON.stringify(first)
        .replace(":", ": ")
        .replace(/[{}]/g, (at) => (at === "{" ? "{ " : " }"))} } },`,
      "who acted first",
    ],
    ["", `"scope": "${scope}",`, "never more than before"],
    ["", `"exp": ${Number(exp) - Number(iat)} s after "iat"`, "never later than before"],
  ];
  const height = lines.length * LINE + 26;
  parts.push(box(20, CODE_TOP - 34, [WIDTH - 40, height], "token"));
  for (const [row, [kind, text = "", why = ""]] of lines.entries()) {
    const y = CODE_TOP - 8 + row * LINE;
    parts.push(write(38, y, `code ${kind}`, text));
    if (why !== "")
      parts.push(`<text class="small" style="text-anchor: end" x="${WIDTH - 38}" y="${y}">${why}</text>`);
  }
  const whole = CODE_TOP - 34 + height + 20;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${whole}" width="${WIDTH}" height="${whole}" role="img" aria-labelledby="title">`,
    '<title id="title">Alice\'s work goes through planner, booking and crew; each token has less scope or a shorter life, and the last names all three.</title>',
    `<style>${STYLE}</style>`,
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M1 1 L7 4 L1 7" style="marker-end: none"/></marker></defs>',
    `<rect class="sheet" x="0.5" y="0.5" width="${WIDTH - 1}" height="${whole - 1}" rx="8"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/** Plays the chain in a temporary folder; the picture is the same at each run. */
export async function makePicture(): Promise<string> {
  const parent = mkdtempSync(join(tmpdir(), "mandate-picture-"));
  try {
    return draw(await playChain(join(parent, "data")));
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

if (import.meta.main) writeFileSync(FILE, await makePicture());
