/**
 * A stand-in for the company's OpenID Provider in the development profile: two users, no passwords, in the process of
 * `npm start` and on loopback alone, so that a browser shows the whole way to a token. No server has it in `src`.
 */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { hash } from "../src/adapters/crypto/hash.ts";
import { random } from "../src/adapters/crypto/random.ts";
import { listen } from "../src/http/listen.ts";
import { BODY_BYTES_MAX } from "../src/limits/connections.ts";
import { frame, type Page } from "../src/people/pages/page.ts";
import { en } from "../src/people/pages/texts-en.ts";
import { defined } from "../src/result.ts";
import { ACCENT } from "../src/settings/colours.ts";
import { html, link } from "../src/spec/html.ts";
import type { JsonObject } from "../src/spec/rfc8259.ts";
import { type Idp, openIdp, readIdpFile } from "./idp.ts";

const CODES_MAX = 100;

/** Their `sub`, and the name that our pages show. */
const USERS: ReadonlyMap<string, string> = new Map([
  ["alice", "Alice Example"],
  ["bob", "Bob Example"],
]);

type Answer = { status: number; type: string; text: string; location?: string };

/** How many codes it remembers, and whether any name is that of a user, beside the two of its page. */
export type StandInOptions = { codesMax?: number; anyName?: boolean };

/** Serves the provider of the profile, if users sign in there; what it serves ends with the process, or is closed. */
export async function openStandIn(
  profile: string,
  options: StandInOptions = {},
): Promise<Server | undefined> {
  const { signIn } = JSON.parse(readFileSync(join(profile, "config.json"), "utf8"));
  if (signIn === undefined) return undefined;
  const { idp, settings, jwks } = await openIdp(profile);
  const answer = makeAnswers(idp, jwks, options);
  const tls = { key: readIdpFile(profile, "tls-key.pem"), cert: readIdpFile(profile, "tls-cert.pem") };
  const server = createServer(tls, async (request, response) => {
    let body = "";
    for await (const chunk of request) {
      body += chunk;
      if (body.length > BODY_BYTES_MAX) {
        request.destroy();
        return;
      }
    }
    const { status, type, text, location } = await answer(request.method ?? "", request.url ?? "", body);
    const headers = { "Content-Type": type, "Cache-Control": "no-store", Location: location };
    response.writeHead(status, defined<Record<string, string>>(headers));
    response.end(text);
  });
  await listen(server, settings);
  return server;
}

function makeAnswers(idp: Idp, jwks: object, { codesMax = CODES_MAX, anyName = false }: StandInOptions) {
  const { issuer } = idp;
  const codes = new Map<string, { asked: URLSearchParams; user: string }>();

  return async (method: string, target: string, body: string): Promise<Answer> => {
    const { pathname, searchParams: asked } = new URL(target, issuer);
    switch (`${method} ${pathname}`) {
      case "GET /.well-known/openid-configuration":
        return json(200, metadataOf(issuer));
      case "GET /jwks":
        return json(200, jwks);
      case "GET /login": {
        const user = asked.get("user");
        if (user === null || !(anyName || USERS.has(user))) {
          const look = { texts: en, operator: "Stand-in provider", colours: ACCENT };
          const text = frame(choicePage(issuer, asked), look);
          return { status: 200, type: "text/html; charset=utf-8", text };
        }
        const code = random.secret();
        const [oldest] = codes.keys();
        if (codes.size >= codesMax && oldest !== undefined) codes.delete(oldest);
        codes.set(code, { asked, user });
        const back = new URL(asked.get("redirect_uri") ?? "");
        for (const [name, value] of Object.entries({ code, state: asked.get("state") ?? "", iss: issuer })) {
          back.searchParams.set(name, value);
        }
        return { status: 303, type: "text/plain", text: "", location: back.href };
      }
      case "POST /token": {
        const form = new URLSearchParams(body);
        const known = codes.get(form.get("code") ?? "");
        codes.delete(form.get("code") ?? "");
        const challenge = hash.sha256(form.get("code_verifier") ?? "");
        const fits =
          known?.asked.get("code_challenge") === challenge &&
          known.asked.get("redirect_uri") === form.get("redirect_uri");
        if (known === undefined || !fits) return json(400, { error: "invalid_grant" });
        return json(200, {
          access_token: "none",
          token_type: "Bearer",
          id_token: await mintIdToken(idp, known.asked, known.user),
        });
      }
      default:
        return json(404, {});
    }
  };
}

const json = (status: number, body: object): Answer => ({
  status,
  type: "application/json",
  text: JSON.stringify(body),
});

const metadataOf = (issuer: string): JsonObject => ({
  issuer,
  authorization_endpoint: `${issuer}/login`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  response_types_supported: ["code"],
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: ["ES256"],
  authorization_response_iss_parameter_supported: true,
});

const mintIdToken = (idp: Idp, asked: URLSearchParams, user: string): Promise<string> =>
  idp.mintUserToken({
    sub: user,
    aud: asked.get("client_id") ?? "",
    claims: {
      nonce: asked.get("nonce") ?? "",
      auth_time: Math.floor(Date.now() / 1000),
      name: USERS.get(user) ?? user,
    },
  });

/** In the dress of our own pages, and under a name of its own. */
export function choicePage(issuer: string, asked: URLSearchParams): Page {
  const links = [...USERS].map(([user, name]) => {
    const query = new URLSearchParams(asked);
    query.set("user", user);
    return html`<li>${link(`${issuer}/login?${query.toString()}`, html`${name}`)}</li>`;
  });
  const title = "Who are you?";
  const body = html`
<h1>${title}</h1>
<p>This stands in for your company's sign-in page in the development profile. It asks for no password.</p>
<ul class="choices">${links}</ul>`;
  return { status: 200, show: () => ({ title, body }) };
}
