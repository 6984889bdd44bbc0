/** The page of what works with this server: `npm run reference` writes it from this table and the versions that are installed. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

type Program = {
  name: string;
  /** The package of the lock file that the test runs. */
  package: string;
  test: string;
  setting: string;
  known: string;
};

const PROGRAMS: readonly Program[] = [
  {
    name: "MCP SDK for TypeScript, client",
    package: "@modelcontextprotocol/client",
    test: "interop/mcp-client",
    setting: "none",
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
    name: "@cloudflare/workers-oauth-provider",
    package: "@cloudflare/workers-oauth-provider",
    test: "interop/foreign-server",
    setting: "a partner of the operator's",
    known: "It redeems our ID-JAG unmodified.",
  },
  {
    name: "jose, in an API",
    package: "jose",
    test: "interop/developers-forged",
    setting: "`typ` `at+jwt`, the algorithm of the target",
    known: "As in verify.ts of the page for APIs: bound tokens too.",
  },
];

/** What documentation and sources of the others say; nothing here runs them. */
const READ: readonly (readonly [name: string, setting: string, known: string])[] = [
  [
    "FastMCP, `JWTVerifier`",
    '`algorithm="ES256"`, or `"alg": "RS256"` at the target',
    "It takes one algorithm, RS256 where none is named.",
  ],
  [
    "Quarkus OIDC, in an API",
    "`quarkus.oidc.token.audience` is the target's name",
    "Without it the audience is not looked at. Scopes are permissions (`@PermissionsAllowed`), not roles.",
  ],
  [
    "Spring Security, as a client",
    "none",
    "It reads the error of the token endpoint from an answer with 400; one with 401 is told as `invalid_token_response`.",
  ],
  [
    "Spring Security, in an API",
    '`"typ": "JWT"` at the target, or a validator for `at+jwt`',
    "As it comes it refuses `at+jwt`, and knows no EdDSA.",
  ],
  [
    "oauthlib, requests-oauthlib",
    "ask for what is given, or `OAUTHLIB_RELAX_TOKEN_SCOPE=1`",
    "An answer with less scope than was asked for is raised as a warning that stops the program.",
  ],
  [
    "golang.org/x/oauth2",
    '`"method": "client_secret"`, or `AuthStyleInHeader`',
    "It repeats a request after any error, with the secret in the body, and tells the second answer.",
  ],
];

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;

export function worksWithPage(): string {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const run = PROGRAMS.map(({ name, package: id, test, setting, known }) => {
    const file = `test/${test}.test.ts`;
    // A row is a claim of its test.
    if (!existsSync(join(ROOT, file))) throw new Error(`${name}: there is no ${file}`);
    return row([name, packages[`node_modules/${id}`].version, setting, known, `\`${file}\``]);
  });
  return `# Works with

Made by \`npm run reference\` from \`scripts/works-with.ts\` and the lock file.

Run by our tests, unmodified:

| program | version | setting | known | test |
|---|---|---|---|---|
${run.join("")}
Read in documentation and sources, not run here:

| program | setting | known |
|---|---|---|
${READ.map(row).join("")}`;
}
