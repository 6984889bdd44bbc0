#!/bin/sh
# OpenFGA's SDK for JavaScript 0.9.7 signs a JWT as client assertion (RFC 7523) when it has a key in place of a secret. Its
# `aud` is the configured `apiTokenIssuer` with a slash behind it. Where that setting names the token endpoint, as it has to
# wherever the endpoint is not at /oauth/token, the audience is the URL of the endpoint and a slash: neither the endpoint,
# to which the request goes, nor the issuer, so that a server that compares as RFC 7523 section 3 says refuses it. Where the
# setting names the issuer, an issuer without a slash at its end is not the audience either. The header has no `kid`.
# It concerns servers whose token endpoint has another path, or whose issuer has no slash at its end; a secret works there.
# Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y > /dev/null
npm install --silent --no-audit --no-fund @openfga/sdk@0.9.7 > npm.log 2>&1 || { cat npm.log; exit 1; }
cat > run.mjs <<'JS'
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { CredentialsMethod, OpenFgaClient } from "@openfga/sdk";

const requests = [];
const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const isToken = request.method === "POST";
  if (isToken) requests.push({ path: request.url, form: new URLSearchParams(body) });
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(isToken ? { access_token: "t", token_type: "Bearer", expires_in: 3600 } : { stores: [] }));
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${server.address().port}`;
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const decoded = (part) => JSON.parse(Buffer.from(part, "base64url"));

const seen = [];
for (const apiTokenIssuer of [`${origin}/token`, origin]) {
  const config = {
    apiTokenIssuer,
    apiAudience: "https://fga.example/",
    clientId: "client",
    clientAssertionSigningKey: privateKey.export({ type: "pkcs8", format: "pem" }),
    clientAssertionSigningAlgorithm: "RS256",
  };
  const credentials = { method: CredentialsMethod.ClientCredentials, config };
  await new OpenFgaClient({ apiUrl: origin, credentials }).listStores();
  const { path, form } = requests.at(-1);
  const [header, claims] = form.get("client_assertion").split(".").slice(0, 2).map(decoded);
  seen.push(`${path} aud=${claims.aud.replace(origin, "")} kid=${header.kid}`);
}
console.log("@openfga/sdk 0.9.7:", seen.join("; "));
process.exit(seen.join() === "/token aud=/token/ kid=undefined,/oauth/token aud=/ kid=undefined" ? 0 : 1);
JS
node run.mjs
