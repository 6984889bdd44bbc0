/**
 * A stand-in for the company's OpenID Provider in the development profile: two users, no passwords, in the process of
 * the server and on loopback alone, so that a browser shows the whole way to a token. The production profile refuses it.
 */
import { createServer } from "node:https";
import { openProviderKey } from "../adapters/crypto/provider-keys.ts";
import { hash, random } from "../adapters/crypto/system.ts";
import type { Config } from "../config/config.ts";
import { listen } from "../http/listen.ts";
import { html } from "../http/pages/html.ts";
import { BODY_BYTES_MAX } from "../limits.ts";
import { defined } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";

const ALG = "ES256";
const TOKEN_SECONDS = 300;
const CODES_MAX = 100;

/** Their `sub`, and the name that our pages show. */
const USERS: ReadonlyMap<string, string> = new Map([
  ["alice", "Alice Example"],
  ["bob", "Bob Example"],
]);

type Answer = { status: number; type: string; text: string; location?: string };

/** It serves until the process ends. */
export async function openStandIn(at: NonNullable<Config["fixed"]["standIn"]>): Promise<void> {
  const answer = makeAnswers(at.issuer, at.signingKey);
  const server = createServer({ key: at.key, cert: at.cert }, async (request, response) => {
    let body = "";
    for await (const chunk of request) {
      body += chunk;
      if (body.length > BODY_BYTES_MAX) {
        request.destroy();
        return;
      }
    }
    const { status, type, text, location } = answer(request.method ?? "", request.url ?? "", body);
    const headers = { "Content-Type": type, "Cache-Control": "no-store", Location: location };
    response.writeHead(status, defined<Record<string, string>>(headers));
    response.end(text);
  });
  await listen(server, at);
}

function makeAnswers(issuer: string, pem: string): (method: string, target: string, body: string) => Answer {
  const key = openProviderKey(pem);
  const codes = new Map<string, { asked: URLSearchParams; user: string }>();

  return (method, target, body) => {
    const { pathname, searchParams: asked } = new URL(target, issuer);
    switch (`${method} ${pathname}`) {
      case "GET /.well-known/openid-configuration":
        return json(200, metadataOf(issuer));
      case "GET /jwks":
        return json(200, { keys: [key.publicJwk] });
      case "GET /login": {
        const user = asked.get("user");
        if (user === null || !USERS.has(user)) return choicePage(asked);
        const code = random.secret();
        const [oldest] = codes.keys();
        if (codes.size >= CODES_MAX && oldest !== undefined) codes.delete(oldest);
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
        const idToken = key.sign(claimsOf(issuer, known.asked, known.user));
        return json(200, { access_token: "none", token_type: "Bearer", id_token: idToken });
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
  id_token_signing_alg_values_supported: [ALG],
  authorization_response_iss_parameter_supported: true,
});

function claimsOf(issuer: string, asked: URLSearchParams, user: string): JsonObject {
  const now = Math.floor(Date.now() / 1000);
  return {
    iss: issuer,
    sub: user,
    aud: asked.get("client_id") ?? "",
    nonce: asked.get("nonce") ?? "",
    iat: now,
    exp: now + TOKEN_SECONDS,
    auth_time: now,
    name: USERS.get(user) ?? user,
  };
}

function choicePage(asked: URLSearchParams): Answer {
  const links = [...USERS].map(([user, name]) => {
    const query = new URLSearchParams(asked);
    query.set("user", user);
    return html`<li><a href="/login?${query.toString()}">${name}</a></li>`;
  });
  const title = "Sign in (stand-in provider of the development profile)";
  const page = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head>
<body><main><h1>${title}</h1><ul>${links}</ul></main></body></html>`;
  return { status: 200, type: "text/html; charset=utf-8", text: page.toString() };
}
