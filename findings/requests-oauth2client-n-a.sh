#!/bin/sh
# requests_oauth2client 1.8.0 has a method for token exchange (RFC 8693), and two answers of it surprise. An answer 200
# with `token_type` "N_A", as section 2.2.1 demands for a token that is no access token (a JWT authorization grant, an
# ID-JAG), ends in "The remote endpoint returned an error", although there was none. And the short name "jwt" is sent as it
# is for `requested_token_type`, while for `subject_token_type` the same method makes the URN of it.
# It concerns every client that asks for a grant to take to another domain. Fails if the behaviour changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q requests_oauth2client==1.8.0
cat > "$folder/seen.py" <<'PYTHON'
import http.server
import json
import threading
import urllib.parse
from requests_oauth2client import InvalidTokenResponse, OAuth2Client

JWT = "urn:ietf:params:oauth:token-type:jwt"
asked = []

class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        form = self.rfile.read(int(self.headers["content-length"])).decode()
        asked.append(dict(urllib.parse.parse_qsl(form)))
        answer = {"access_token": "e30.e30.c2ln", "issued_token_type": JWT, "expires_in": 60}
        body = json.dumps({**answer, "token_type": self.server.token_type}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = f"http://127.0.0.1:{server.server_port}/token"
client = OAuth2Client(token_endpoint=endpoint, client_id="app", client_secret="s", testing=True)

def exchanged(token_type, requested):
    server.token_type = token_type
    try:
        return str(client.token_exchange(subject_token="x", subject_token_type="jwt", requested_token_type=requested))
    except InvalidTokenResponse as fault:
        return str(fault)

seen = [exchanged("Bearer", JWT), exchanged("N_A", JWT), exchanged("Bearer", "jwt")]
print(seen, asked[2]["subject_token_type"], asked[2]["requested_token_type"])
assert seen[0] == seen[2] == "e30.e30.c2ln"
assert seen[1].startswith("The remote endpoint returned an error")
assert asked[2]["subject_token_type"] == JWT and asked[2]["requested_token_type"] == "jwt"
PYTHON
"$folder/venv/bin/python" "$folder/seen.py"
