/**
 * Python's clients from the registry: FastMCP as a server that verifies our tokens, MCP's SDK with credentials before it,
 * requests-oauthlib, which minds a scope that is narrower than what it asked for, and google-auth with a job's token in a file.
 */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT as WORKLOADS } from "../../src/spec/workload-grant.ts";
import { files, forPeople } from "../../test/support/people.ts";
import { makePlatform } from "../../test/support/platforms.ts";
import { startProvider } from "../../test/support/provider.ts";
import { stop } from "../../test/support/stop.ts";
import { listenAt, makeWorld } from "../../test/support/world.ts";
import { freePorts } from "../server-process.ts";
import { missing } from "./spring.ts";

export const VERSIONS = {
  fastmcp: "4.2.3",
  "google-auth": "2.63.0",
  mcp: "2.3.0",
  oauthlib: "4.0.1",
  "requests-oauthlib": "2.0.0",
} as const;
const OTHER = "https://other.example";
const ci = makePlatform("https://ci.example", { sub: "repo:example/shop:ref:refs/heads/main" });
const SECRET = "a secret of the trial, 1234567890";
const scopes = ["trips.read", "trips.book"];

/** With users, because MCP's SDKs take no metadata without an authorization endpoint. */
const configurationAt = (
  issuer: string,
  port: number,
  api: string,
  { signIn, trustedIssuers }: ReturnType<typeof forPeople>,
) => ({
  ...{ issuer, signIn, drafts: [SPIFFE, WORKLOADS] },
  trustedIssuers: {
    ...trustedIssuers,
    // google-auth sends the same file for each token.
    [ci.issuer]: {
      keys: { file: "platform.json" },
      workloads: { ci: { tenancy: "dedicated", subjects: ["repo:example/shop:*"], reusable: true } },
    },
  },
  listen: listenAt(port),
  clients: { caller: { method: "client_secret", secrets: [SECRET], defaultTarget: api } },
  targets: [
    { names: [api], scopes },
    { names: [OTHER], scopes },
  ],
  policies: [
    {
      ...{ id: "callers", allow: "client_credentials", clients: ["caller"] },
      ...{ targets: [api, OTHER], scopes: ["trips.read"] },
    },
    {
      ...{ id: "jobs", allow: "client_credentials", actors: ["platform://ci/*"] },
      ...{ targets: [api], scopes: ["trips.read"] },
    },
  ],
});

const PROGRAM = `import asyncio, os, sys, threading, time
import uvicorn
from google.auth import identity_pool
from google.auth.transport.requests import Request
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error
from requests_oauthlib import OAuth2Session

issuer, api, other, secret, job = sys.argv[1:]

def session(**params):
    client = OAuth2Session(client=BackendApplicationClient("caller", scope=params.pop("scope", None)))
    return client.fetch_token(issuer + "/token", client_id="caller", client_secret=secret, **params)

def attempt(name, what):
    try:
        print(name, *what()["scope"])
    except Warning as warning:
        print(name, "Warning", *warning.new_scope)
    except OAuth2Error as error:
        print(name, error.error)

attempt("oauthlib", session)
attempt("oauthlib-narrow", lambda: session(scope=["trips.read", "trips.book"]))
os.environ["OAUTHLIB_RELAX_TOKEN_SCOPE"] = "1"
attempt("oauthlib-relaxed", lambda: session(scope=["trips.read", "trips.book"]))
attempt("oauthlib-refused", lambda: session(scope=["trips.book"]))

credentials = identity_pool.Credentials.from_info({
    "type": "external_account",
    "audience": api,
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": issuer + "/token",
    "credential_source": {"file": job},
}, scopes=["trips.read"])
for _ in range(2):
    before = credentials.token
    credentials.refresh(Request())
    print("google-auth", credentials.valid and credentials.token != before)

class Storage:
    tokens = info = None
    async def get_tokens(self): return self.tokens
    async def set_tokens(self, tokens): self.tokens = tokens
    async def get_client_info(self): return self.info
    async def set_client_info(self, info): self.info = info

def verifier(**how):
    return JWTVerifier(jwks_uri=issuer + "/jwks", issuer=issuer, audience=api, **how)

async def main():
    good = session()["access_token"]
    foreign = session(audience=other)["access_token"]
    for name, token, how in [
        ("fastmcp-default", good, {}),
        ("fastmcp-es256", good, {"algorithm": "ES256"}),
        ("fastmcp-other-audience", foreign, {"algorithm": "ES256"}),
        ("fastmcp-scope", good, {"algorithm": "ES256", "required_scopes": ["trips.book"]}),
    ]:
        taken = await verifier(**how).verify_token(token)
        print(name, taken and " ".join([taken.client_id, *taken.scopes]))

    origin, port = api.removesuffix("/mcp"), int(api.split(":")[2].split("/")[0])
    auth = RemoteAuthProvider(verifier(algorithm="ES256", required_scopes=["trips.read"]), [issuer], origin)
    server = FastMCP("trips", auth=auth)

    @server.tool
    def trips() -> str:
        return "two trips"

    running = uvicorn.Server(uvicorn.Config(server.http_app(), port=port, log_level="error"))
    threading.Thread(target=running.run, daemon=True).start()
    while not running.started:
        time.sleep(0.05)
    for method in ["client_secret_basic", "client_secret_post"]:
        provider = ClientCredentialsOAuthProvider(api, Storage(), "caller", secret, method, issuer=issuer)
        async with Client(StreamableHttpTransport(api, auth=provider)) as client:
            print("mcp", method, (await client.call_tool("trips")).data)
    running.should_exit = True

asyncio.run(main())
`;

const EXPECTED = [
  "oauthlib trips.read",
  "oauthlib-narrow Warning trips.read",
  "oauthlib-relaxed trips.read",
  "oauthlib-refused invalid_scope",
  "google-auth True",
  "google-auth True",
  "fastmcp-default None",
  "fastmcp-es256 caller trips.read",
  "fastmcp-other-audience None",
  "fastmcp-scope None",
  "mcp client_secret_basic two trips",
  "mcp client_secret_post two trips",
];

export async function* runPython(): AsyncIterable<string> {
  if (missing("python3").length > 0 || spawnSync("python3", ["-c", "import venv, ensurepip"]).status !== 0) {
    yield "not run here: there is no python3 with venv";
    return;
  }
  const [port = 0, apiPort = 0] = await freePorts(2);
  const issuer = `https://localhost:${port}`;
  const api = `http://localhost:${apiPort}/mcp`;
  const provider = await startProvider();
  const world = await makeWorld(configurationAt(issuer, port, api, forPeople(provider)), {
    files: { ...files(provider), "platform.json": ci.jwks },
  });
  try {
    const venv = join(world.folder, "venv");
    const packages = Object.entries(VERSIONS).map(([name, version]) => `${name}==${version}`);
    for (const [program, ...words] of [
      ["python3", "-m", "venv", venv],
      [join(venv, "bin/pip"), "install", "-q", ...packages],
    ] as const) {
      const { status, stderr } = spawnSync(program, words, { encoding: "utf8" });
      if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr.slice(-800)}`);
    }
    writeFileSync(join(world.folder, "clients.py"), PROGRAM);
    const job = join(world.folder, "job.jwt");
    writeFileSync(job, ci.token({ aud: issuer }));
    const ca = join(world.folder, "tls/ca.pem");
    const child = spawn(
      join(venv, "bin/python"),
      [join(world.folder, "clients.py"), issuer, api, OTHER, SECRET, job],
      {
        env: { ...process.env, SSL_CERT_FILE: ca, REQUESTS_CA_BUNDLE: ca },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const [told, faults] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const lines = told.trim().split("\n");
    const wrong = EXPECTED.flatMap((line, at) =>
      lines[at] === line ? [] : [`${lines[at]} in place of ${line}`],
    );
    if (wrong.length > 0) throw new Error(`${wrong.join("; ")} ${faults.slice(-800)}`);
    const { fastmcp, mcp, oauthlib } = VERSIONS;
    yield `FastMCP ${fastmcp} takes ES256 where it is named, and a tool is called by MCP's SDK ${mcp} with credentials`;
    yield `google-auth ${VERSIONS["google-auth"]} exchanges a job's token of a file, again and again`;
    yield `requests-oauthlib (oauthlib ${oauthlib}) raises a narrower scope, and takes it with OAUTHLIB_RELAX_TOKEN_SCOPE`;
  } finally {
    await stop(world, provider);
  }
}
