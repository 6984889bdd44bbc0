#!/bin/sh
# idpyoidc 5.0.0 (OpenID's Python library) makes the DPoP proofs of its clients so that a server by RFC 9449 refuses them:
# `ath` is the hash of the access token as hexadecimal digits (section 4.2: base64url of the hash), the nonce that the
# caller passes on from the server is not in the proof (section 8), and `htu` keeps the query (section 4.2: without it).
# Its own resource server compares the same digits, so that the package alone never notices. It concerns every client
# and every API that meet it with another implementation. Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet idpyoidc==5.0.0 cryptojwt==1.11.0 2> pip.log || { cat pip.log; exit 1; }
cat > proof.py <<'PYTHON'
import base64
import hashlib
import json
import sys
from importlib.metadata import version

from idpyoidc.client.oauth2 import Client
from idpyoidc.client.oauth2.add_on.dpop import dpop_header

URL, TOKEN, NONCE = "https://api.example/trips?day=1", "an-access-token", "nonce-of-the-server"
add_on = {
    "function": "idpyoidc.client.oauth2.add_on.dpop.add_support",
    "kwargs": {"dpop_signing_alg_values_supported": ["ES256"], "with_dpop_header": ["accesstoken"]},
}
client = Client(
    config={"client_id": "trips", "redirect_uris": ["https://app.example/back"], "add_ons": {"dpop": add_on}},
    services={"accesstoken": {"class": "idpyoidc.client.oauth2.access_token.AccessToken"}},
)
headers = dpop_header(client.get_context(), "resource", "GET", token=TOKEN, nonce=NONCE, endpoint_url=URL)
payload = headers["dpop"].split(".")[1]
claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
digest = hashlib.sha256(TOKEN.encode())
right = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
print("idpyoidc", version("idpyoidc"))
print("ath:", claims["ath"], "where RFC 9449 has", right)
print("nonce:", claims.get("nonce", "absent"), "where the caller passed", NONCE)
print("htu:", claims["htu"])
sys.exit(not (claims["ath"] == digest.hexdigest() and "nonce" not in claims and claims["htu"] == URL))
PYTHON
python/bin/python proof.py
