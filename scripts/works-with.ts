/** The page of what works with this server: `npm run reference` writes it from these tables and the versions that are run. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { VERSION as X_OAUTH2 } from "./trials/go-oauth2.ts";
import { VERSION as OAUTH2_PROXY } from "./trials/oauth2-proxy.ts";
import { VERSIONS as PYTHON } from "./trials/python.ts";
import { VERSION as SPRING } from "./trials/spring.ts";

const ROOT = join(import.meta.dirname, "..");

type Program = {
  name: string;
  setting: string;
  known: string;
} & (
  | {
      /** The package of the lock file that the test runs. */
      package: string;
      test: string;
    }
  | { version: string; trial: string }
);

const WITH_USERS = "`signIn`: its discovery requires an authorization endpoint";

/** The trial runs what is installed, and prints its version. */
const DEBIAN = "Debian's";

const PROGRAMS: readonly Program[] = [
  {
    name: "MCP SDK for TypeScript, client",
    package: "@modelcontextprotocol/client",
    test: "interop/mcp-client",
    setting: WITH_USERS,
    known:
      "From a 401 to a tool call. It signs proofs with ten algorithms, of which the metadata list those that are taken.",
  },
  {
    name: "MCP SDK for TypeScript, version 1",
    package: "@modelcontextprotocol/sdk",
    test: "interop/mcp-people",
    setting: "for step-up, no `refresh` in the rule",
    known:
      "With a refresh token it refreshes where it has to ask anew, gets the old scope, and stops with 403.",
  },
  {
    name: "MCP SDK for Python",
    version: PYTHON.mcp,
    trial: "python",
    setting: WITH_USERS,
    known:
      "Credentials by Basic and in the body, from a 401 to a tool call. The issuer in the metadata of the MCP server has to be ours byte for byte.",
  },
  {
    name: "FastMCP, as an MCP server",
    version: PYTHON.fastmcp,
    trial: "python",
    setting: '`JWTVerifier(…, algorithm="ES256")`, or `"alg": "RS256"` at the target',
    known:
      "It takes one algorithm, RS256 where none is named. `RemoteAuthProvider` gets the issuer as text: `AnyHttpUrl` adds a slash, which MCP's SDK for Python refuses.",
  },
  {
    name: "openid-client",
    package: "openid-client",
    test: "interop/waiting-agents",
    setting: "none",
    known: "Codes, client credentials, exchanges, and waiting for a user.",
  },
  {
    name: "oauth4webapi",
    package: "oauth4webapi",
    test: "interop/oauth4webapi",
    setting: "none",
    known: "Each grant, both ways to show a secret, and the validation of access tokens.",
  },
  {
    name: "golang.org/x/oauth2",
    version: X_OAUTH2,
    trial: "go-oauth2",
    setting: '`"method": "client_secret"`, or `AuthStyleInHeader`',
    known:
      "Credentials, codes and refreshes. Until an answer is good it repeats a refused request with the secret in the body: a client of `client_secret_basic` is told `invalid_client` whatever was wrong.",
  },
  {
    name: "requests-oauthlib",
    version: `${PYTHON["requests-oauthlib"]}, oauthlib ${PYTHON.oauthlib}`,
    trial: "python",
    setting: "ask for what is given, or `OAUTHLIB_RELAX_TOKEN_SCOPE=1`",
    known: "An answer with less scope than was asked for is raised as a warning that stops the program.",
  },
  {
    name: "google-auth for Python",
    version: PYTHON["google-auth"],
    trial: "python",
    setting: "`reusable` and `lifetimeSeconds` of 900 or more",
    known:
      "A job's token in a file is exchanged without client authentication, the same file for each token. The program sets `scopes`.",
  },
  {
    name: "Spring Boot, as a client in an API",
    version: SPRING,
    trial: "spring",
    setting: "none",
    known:
      "It exchanges what the API received under the type `jwt`. It reads the error of an answer with 400; one with 401 is told as `invalid_token_response`.",
  },
  {
    name: "Spring Boot, as an API",
    version: SPRING,
    trial: "spring",
    setting: '`"typ": "JWT"` at the target, or the validator of the page for Spring',
    known: "As it comes it refuses `at+jwt`, and knows no EdDSA. Bound tokens need `.dPoP(withDefaults())`.",
  },
  {
    name: "oauth2-proxy, on go-oidc",
    version: OAUTH2_PROXY,
    trial: "oauth2-proxy",
    setting: "none",
    known: "It takes the algorithms that our metadata list: those of the targets, and RS256.",
  },
  {
    name: "nginx",
    version: DEBIAN,
    trial: "proxies",
    setting: '`proxy.form` `"escaped-pem"`; `proxy.intermediates` for clients below an intermediate',
    known: "An X.509-SVID gets a token through it, by the recipe as printed. It forwards the leaf alone.",
  },
  {
    name: "Apache",
    version: DEBIAN,
    trial: "proxies",
    setting: '`proxy.form` `"rfc9440"`',
    known: "The lines of the recipe make RFC 9440 of its PEM. One intermediate is forwarded.",
  },
  {
    name: "HAProxy",
    version: DEBIAN,
    trial: "proxies",
    setting: '`proxy.form` `"rfc9440"`; `proxy.intermediates` for clients below an intermediate',
    known: "Colons around `ssl_c_der` make RFC 9440. Its chain is in another form, and is not forwarded.",
  },
  {
    name: "google-auth-library",
    package: "google-auth-library",
    test: "interop/google-auth",
    setting: "`reusable` at the registration, `lifetimeSeconds` of 900",
    known: "A file of `external_account` is exchanged as it is. With 300 seconds it exchanges at each call.",
  },
  {
    name: "jose, in an API",
    package: "jose",
    test: "interop/developers-forged",
    setting: "`typ` `at+jwt`, the algorithm of the target",
    known: "As in verify.ts of the page for APIs: bound tokens too.",
  },
  {
    name: "@cloudflare/workers-oauth-provider",
    package: "@cloudflare/workers-oauth-provider",
    test: "interop/foreign-server",
    setting: "a partner of the operator's",
    known: "It redeems our ID-JAG unmodified.",
  },
];

/** Nothing here runs them: they were tried by hand once, or their sources or pages were read. */
const NOT_RUN: readonly (readonly [name: string, from: string, setting: string, known: string])[] = [
  [
    "MCP SDK for Go",
    "tried, 1.8.0",
    '`"method": "client_secret"`; `defaultTarget` for credentials',
    "It tries Basic, then the body. Its request for credentials names no resource.",
  ],
  [
    "MCP SDK for Rust (rmcp)",
    "tried, 3.11.0",
    "none",
    "Users, and machines by an ID token. A refresh token as subject, its default for the enterprise, is not taken here.",
  ],
  ["MCP SDKs for C# and Java", "not tried", "", "Nothing is known."],
  [
    "FastMCP, as a client",
    "tried, 4.2.3",
    "none",
    "Registration, a client's own id, a metadata document, machines.",
  ],
  ["mcp-remote", "tried, 0.15.1", "none", "Registration and a list of tools."],
  [
    "Quarkus OIDC, in an API",
    "its pages",
    "`quarkus.oidc.token.audience` is the target's name",
    "Without it the audience is not looked at. Scopes are permissions (`@PermissionsAllowed`), not roles.",
  ],
  [
    "PyJWT, in an API",
    "tried, 2.15.1",
    "`leeway=30`",
    "Without it a clock that is a second behind refuses fresh tokens.",
  ],
  [
    "jjwt, java-jwt, jose4j, in an API",
    "their sources",
    "compare `typ` yourself",
    "They do not look at `typ`.",
  ],
  [
    "Nimbus oauth2-oidc-sdk",
    "tried, 11.26",
    "none",
    "Both forms of discovery, for an issuer with a path too.",
  ],
  [
    "zitadel/oidc",
    "tried, 3.52.0",
    "none",
    "As an OAuth client, for exchanges and in an API; for OpenID Connect it wants an ID token, and there is none.",
  ],
  ["Auth0 auth-js", "tried, 1.16.1", "none", "Its `audience` is taken for the resource."],
  [
    "Authlib, `private_key_jwt`",
    "tried, 1.9.10",
    "`clientAssertionSeconds: 3600`",
    "Its assertions live for an hour.",
  ],
  [
    "OpenAI's and Anthropic's SDKs",
    "their sources",
    "see the page of clouds beside the configuration",
    "They send JSON to their own servers; `/token` takes forms.",
  ],
  [
    "SPIRE, py-spiffe, go-spiffe",
    "tried, 1.15.3, 0.3.2, 2.9.0",
    "trust domain by `https_spiffe` or `https_web`",
    "JWT-SVIDs as client and actor, X.509-SVIDs in the handshake, keys that rotate. A second audience in an SVID is refused.",
  ],
  [
    "Keycloak",
    "tried, 26.7.5",
    "a client with `private_key_jwt` for `signIn`",
    "Users sign in there, its tokens are subjects, and it redeems grants and our ID-JAG. Its tokens do not keep `act`.",
  ],
  ["node-oidc-provider", "tried, 9.13.3", "none", "Users sign in there."],
  [
    "Spring Authorization Server",
    "its source, 7.1.2",
    "",
    "It has no `jwt-bearer` grant, so it redeems nothing of ours.",
  ],
  [
    "Vault, OpenBao, JWT auth",
    "its source, 0.26.1",
    "`oidc_discovery_url` and `bound_issuer` are the issuer, `bound_audiences` the target's name",
    "ES256, RS256, EdDSA. A role without `bound_audiences` refuses our tokens.",
  ],
  [
    "Kafka's client and broker, librdkafka",
    "tried without this server, 4.4.0, 2.16.0; the request is answered in `test/zoo`",
    "`defaultTarget`; no `+`, `&`, `%` in scopes; `sasl.oauthbearer.assertion.claim.jti.include` for grants",
    "With a secret they write the scope unencoded. The broker takes ES256 and `at+jwt`, and reads `scope` as one name.",
  ],
  [
    "Apache Iceberg's REST catalog, Java",
    "tried without this server, 1.12.0",
    '`oauth2-server-uri`; `token-exchange-enabled=false`; `"method": "client_secret"`; `audience`, `resource` or `defaultTarget`',
    "As it comes it renews its token by an exchange that no client authenticates. After some 3.5 seconds of 503 it never asks again, until it is started anew.",
  ],
  [
    "Hono, `jwk` and `jwt`, in an API",
    "tried without this server, 4.13.19",
    '`"typ": "JWT"` at the target',
    "It refuses each `typ` but `JWT`. ES256, RS256, EdDSA.",
  ],
  [
    "idpyoidc",
    "tried without this server, 5.0.0",
    "no DPoP",
    "The `ath` of its proofs is hexadecimal, and a nonce is left out; APIs on jose or on our page refuse them.",
  ],
  [
    "Prometheus, as a client",
    "its library tried without this server, 0.74.0",
    "`oauth2` with `client_secret`; `endpoint_params` with `resource`, or `defaultTarget`",
    "It writes the secret by RFC 6749. Its JWT grant has no client beside it.",
  ],
  [
    "OpenFGA's SDKs for JavaScript and Python",
    "tried without this server, 0.9.7, 0.10.5",
    "a secret, `apiTokenIssuer` is the URL of `/token`, `lifetimeSeconds` of 900",
    "With 300 seconds they ask for a token at each call. The `aud` of their signed JWTs is that setting and a slash, which is refused here.",
  ],
  [
    "Open Policy Agent, as a client",
    "tried without this server, 1.22.4",
    "`oauth2` with `client_secret`, or `signing_key`, `include_jti_claim` and `iss`, `sub`, `aud` in `additional_claims`",
    "It keeps a token until it ends. Basic is not encoded: no client id with a colon.",
  ],
  [
    "grpc-go, `credentials/sts`",
    "tried without this server, 1.85.0",
    "",
    "It does not work: its exchange is JSON, and `/token` takes forms. Exchange by golang.org/x/oauth2, and give gRPC the token.",
  ],
  [
    "Kubernetes API server",
    "its source, 0.37.2",
    "AuthenticationConfiguration: `issuer.url`, `audiences`",
    "RS256 or ES256 at the target; it knows no EdDSA.",
  ],
  [
    "AWS, Entra, Google Cloud, as targets",
    "their pages; the tokens are made in `test/conformance/clouds.test.ts`",
    "see the page of clouds beside the configuration",
    "The audience is the target's name. Whether they mind `typ` `at+jwt` is not known.",
  ],
  [
    "Envoy, Istio, Contour",
    "their pages; the field is read in `test/zoo`",
    '`proxy.form` `"xfcc"`; `SANITIZE_SET` with `cert` and `chain` there',
    "A second element, JSON, or a digest alone is refused.",
  ],
  [
    "Traefik",
    "its source, 3.7.13; the field is read in `test/zoo`",
    '`proxy.form` `"base64-list"`; `passTLSClientCert.pem` there',
    "Intermediates come in the list. `insecure` and `trustedIPs` let the field of a client through.",
  ],
  [
    "Caddy",
    "its source, 2.11.9; the field is read in `test/zoo`",
    '`proxy.form` `"rfc9440"`; `proxy.intermediates` for clients below an intermediate',
    "Its recipe writes the leaf alone; `::` is read as no certificate.",
  ],
  [
    "AWS's ALB, Azure's Application Gateway",
    "their pages",
    "a Network Load Balancer passes TLS through to `mtls`",
    "They show this server no certificate of their own, so that their fields are refused at load.",
  ],
];

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;

export function worksWithPage(): string {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const run = PROGRAMS.map((program) => {
    const { name, setting, known } = program;
    const [version, file, by] =
      "test" in program
        ? [
            packages[`node_modules/${program.package}`].version,
            `test/${program.test}.test.ts`,
            `\`test/${program.test}.test.ts\``,
          ]
        : [program.version, `scripts/trials/${program.trial}.ts`, `\`npm run trials -- ${program.trial}\``];
    // A row is a claim of what runs it.
    if (!existsSync(join(ROOT, file))) throw new Error(`${name}: there is no ${file}`);
    return row([name, version, setting, known, by]);
  });
  return `# Works with

Made by \`npm run reference\` from \`scripts/works-with.ts\`, the lock file and the trials.

Run unmodified, by a test of the suite or by a trial with packages from their registries:

| program | version | setting | known | run by |
|---|---|---|---|---|
${run.join("")}
Not run here: tried once by hand in November 2026, where a version is named, or read; check it before you rely on it:

| program | known from | setting | known |
|---|---|---|---|
${NOT_RUN.map(row).join("")}`;
}
