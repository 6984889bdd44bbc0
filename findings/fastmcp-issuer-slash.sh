#!/bin/sh
# FastMCP 4.2.3 with the issuer as its parameter asks for it, AnyHttpUrl("https://as.example"), publishes that issuer
# with a slash more; the MCP SDK for Python 2.3.0, on which it is built, then refuses the metadata of the server, whose
# `issuer` has none ("Authorization server metadata issuer mismatch"). The issuer as text is published as it is.
# It concerns every authorization server whose issuer is an origin. Fails if either side changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q fastmcp==4.2.3 mcp==2.3.0
cat > "$folder/seen.py" <<'PYTHON'
import asyncio
import httpx2
from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import validate_metadata_issuer
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import AnyHttpUrl

ISSUER = "https://as.example"
METADATA = OAuthMetadata.model_validate({
    "issuer": ISSUER,
    "authorization_endpoint": ISSUER + "/authorize",
    "token_endpoint": ISSUER + "/token",
})

async def published(issuer):
    verifier = JWTVerifier(jwks_uri=ISSUER + "/jwks", issuer=ISSUER, audience="https://api.example/mcp", algorithm="ES256")
    server = FastMCP("api", auth=RemoteAuthProvider(verifier, [issuer], "https://api.example"))
    transport = httpx2.ASGITransport(app=server.http_app())
    async with httpx2.AsyncClient(transport=transport, base_url="https://api.example") as client:
        answer = await client.get("/.well-known/oauth-protected-resource/mcp")
    return str(ProtectedResourceMetadata.model_validate_json(answer.content).authorization_servers[0])

async def main():
    for name, issuer in [("AnyHttpUrl", AnyHttpUrl(ISSUER)), ("text", ISSUER)]:
        expected = await published(issuer)
        try:
            validate_metadata_issuer(METADATA, expected)
            print(name, expected, "taken")
        except OAuthFlowError as refusal:
            print(name, expected, "refused:", refusal)

asyncio.run(main())
PYTHON
"$folder/venv/bin/python" "$folder/seen.py" > "$folder/seen" 2>/dev/null
cat "$folder/seen"
cat > "$folder/expected" <<'TEXT'
AnyHttpUrl https://as.example/ refused: Authorization server metadata issuer mismatch: https://as.example != https://as.example/
text https://as.example taken
TEXT
cmp "$folder/seen" "$folder/expected"
