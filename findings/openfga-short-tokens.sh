#!/bin/sh
# OpenFGA's SDKs renew an access token some time before it expires: 300 seconds, and up to 300 more by chance. So a token
# that lives for 300 seconds, which RFC 6749 allows and short-lived tokens of services have, is never used a second time by
# the SDKs for JavaScript 0.9.7 and Python 0.10.5: each call to the API is a request for a token before it, where the
# authorization server sees ten times what it would expect. From 600 seconds on a token is used again. Neither has a
# setting for it. The SDK for Go 0.6.3 has no such wait. Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'rm -rf "$folder"; kill $server 2> /dev/null || true' EXIT
cd "$folder"
cat > server.py <<'PY'
import http.server, json, sys
asked = {}
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        name, _, seconds = self.path.strip("/").partition("-")
        if self.path.startswith("/count"): body = asked
        elif seconds:
            asked[self.path] = asked.get(self.path, 0) + 1
            body = {"access_token": "t", "token_type": "Bearer", "expires_in": int(seconds)}
        else: body = {"stores": [], "continuation_token": ""}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
PY
python3 server.py > url & server=$!
npm init -y > /dev/null && npm install --silent --no-audit --no-fund @openfga/sdk@0.9.7 > log 2>&1 || { cat log; exit 1; }
python3 -m venv py && py/bin/pip -q install openfga-sdk==0.10.5 > log 2>&1 || { cat log; exit 1; }
cat > run.mjs <<'JS'
import { CredentialsMethod, OpenFgaClient } from "@openfga/sdk";
const [, , apiUrl] = process.argv;
for (const seconds of [300, 900]) {
  const config = { apiTokenIssuer: `${apiUrl}/js-${seconds}`, apiAudience: "a", clientId: "c", clientSecret: "s" };
  const client = new OpenFgaClient({ apiUrl, credentials: { method: CredentialsMethod.ClientCredentials, config } });
  for (let call = 0; call < 10; call += 1) await client.listStores();
}
JS
cat > run.py <<'PY'
import sys
from openfga_sdk.credentials import CredentialConfiguration, Credentials
from openfga_sdk.client import ClientConfiguration
from openfga_sdk.sync import OpenFgaClient
url = sys.argv[1]
for seconds in (300, 900):
    config = CredentialConfiguration(client_id="c", client_secret="s", api_audience="a", api_issuer=f"{url}/py-{seconds}")
    with OpenFgaClient(ClientConfiguration(api_url=url, credentials=Credentials(method="client_credentials", configuration=config))) as client:
        for _ in range(10): client.list_stores()
PY
node run.mjs "$(cat url)"
py/bin/python run.py "$(cat url)"
py/bin/python -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + "/count").read().decode())' "$(cat url)" | tee counts
grep -q '"/js-300": 10, "/js-900": 1, "/py-300": 10, "/py-900": 1' counts
