/**
 * A stand-in for the identity provider of users, for the demo, the benchmark and the tests, never for production.
 * RFC 7517: https://www.rfc-editor.org/rfc/rfc7517.html, sections 4 and 5.
 * OpenID Connect Discovery 1.0, section 4: https://openid.net/specs/openid-connect-discovery-1_0.html
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { importPKCS8, SignJWT } from "jose";
import * as v from "valibot";
import { signingJwk } from "./dev-keys.ts";

const TOKEN_SECONDS = 300;
const PUBLISHED_SECONDS = 300;

/** The content of idp.json, which dev-profile.ts writes. */
export const IdpSettings = v.object({ issuer: v.string(), host: v.string(), port: v.number() });

export type UserTokenInput = {
  sub: string;
  aud: string | string[];
  scope?: string;
  expSeconds?: number;
  header?: { alg?: string; typ?: string; [member: string]: unknown };
  /** Further claims, or other values of those above; `undefined` leaves one out. */
  claims?: { [name: string]: unknown };
};

export type Idp = {
  issuer: string;
  mintUserToken(input: UserTokenInput): Promise<string>;
};

export type RunningIdp = Idp & { close(): Promise<void> };

/** Issues tokens of the profile's identity provider without serving its keys. */
export async function loadIdp(profile: string): Promise<Idp> {
  return (await openIdp(profile)).idp;
}

/** Issues tokens and serves the keys on the port in the profile. */
export async function startIdp(profile: string): Promise<RunningIdp> {
  const { idp, settings, jwks } = await openIdp(profile);
  const metadata = {
    issuer: idp.issuer,
    jwks_uri: `${idp.issuer}/jwks`,
    response_types_supported: ["none"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256"],
  };
  const documents = new Map([
    ["/jwks", { type: "application/jwk-set+json", body: JSON.stringify(jwks) }],
    ["/.well-known/openid-configuration", { type: "application/json", body: JSON.stringify(metadata) }],
  ]);
  const tls = { key: readIdpFile(profile, "tls-key.pem"), cert: readIdpFile(profile, "tls-cert.pem") };
  const server = createServer(tls, (request, response) => {
    const document = documents.get(request.url ?? "");
    if (document === undefined) return response.writeHead(404).end();
    if (request.method !== "GET") return response.writeHead(405, { Allow: "GET" }).end();
    const headers = {
      "Content-Type": document.type,
      "Cache-Control": `public, max-age=${PUBLISHED_SECONDS}`,
    };
    return response.writeHead(200, headers).end(document.body);
  });
  server.listen(settings.port, settings.host);
  await once(server, "listening");
  return {
    ...idp,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The issuer of the profile, its keys and where they are served. */
export async function openIdp(profile: string) {
  const settings = v.parse(IdpSettings, JSON.parse(readIdpFile(profile, "idp.json")));
  const keyPem = readIdpFile(profile, "key.pem");
  const key = await importPKCS8(keyPem, "ES256");
  const jwk = await signingJwk(keyPem);
  const { issuer } = settings;
  const idp: Idp = {
    issuer,
    mintUserToken({ sub, aud, scope, expSeconds = TOKEN_SECONDS, header, claims }) {
      const now = Math.floor(Date.now() / 1000);
      const jti = randomUUID();
      const usual = { iss: issuer, sub, aud, scope, iat: now, exp: now + expSeconds, jti };
      return new SignJWT({ ...usual, ...claims })
        .setProtectedHeader({ alg: "ES256", kid: jwk.kid, typ: "JWT", ...header })
        .sign(key);
    },
  };
  return { idp, settings, jwks: { keys: [jwk] } };
}

export function readIdpFile(profile: string, file: string): string {
  return readFileSync(join(profile, "idp", file), "utf8");
}

if (import.meta.main) {
  const { issuer } = await startIdp(process.argv[2] ?? "data");
  console.log(`The stand-in identity provider serves its keys at ${issuer}/jwks`);
}
