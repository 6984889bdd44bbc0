/** The commands of "First steps" in scripts/README.md, as they stand there, in one shell, with a provider of the test. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { postForm } from "../scripts/http-client.ts";
import { freePorts } from "../scripts/server-process.ts";
import { startProvider, type TestProvider } from "./support/provider.ts";

const ROOT = join(import.meta.dirname, "..");
const APP = "planner-app";

/** An ID token as this client gets it: by a code, for which the user signs in. */
async function idTokenOf({ issuer, ca, signIn }: TestProvider, user: string): Promise<string> {
  const verifier = randomBytes(32).toString("base64url");
  const asked = new URLSearchParams({
    client_id: APP,
    redirect_uri: "https://app.example/callback",
    nonce: "n",
    state: "s",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
  });
  const back = new URL(signIn(`${issuer}/login?${asked}`, user));
  const code = back.searchParams.get("code") ?? "";
  const redirect_uri = "https://app.example/callback";
  const { body } = await postForm(`${issuer}/token`, { code, redirect_uri, code_verifier: verifier }, { ca });
  return String(body.id_token);
}

/** The commands of the page: those of the section's blocks that are marked as shell. */
function commandsOf(page: string, heading: string): readonly string[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  return [...own.matchAll(/```sh\n([^`]*)```/g)].flatMap(([, block = ""]) => block.trim().split("\n"));
}

test("where the start failed, the first token's command says so, and ends after 20 s at most", async () => {
  const page = readFileSync(join(ROOT, "scripts/README.md"), "utf8");
  const command = commandsOf(page, "First steps").find((line) => line.includes("--retry")) ?? assert.fail();
  const [, retries, seconds] = /--retry (\d+) --retry-delay (\d+) /.exec(command) ?? assert.fail(command);
  assert.ok(Number(retries) * Number(seconds) <= 20);
  const [port = 0] = await freePorts(1);
  const shell = spawn("bash", ["-c", command.replace(`--retry ${retries}`, "--retry 1")], {
    env: { ...process.env, DIR: ROOT, ISSUER: `https://localhost:${port}` },
  });
  const said = (await shell.stderr.setEncoding("utf8").toArray()).join("");
  assert.match(said, new RegExp(`curl: \\(7\\) Failed to connect to localhost port ${port}`));
});

test("the first steps of the page lead from init to a delegated token, in at most ten commands", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "mandate first "));
  t.after(() => rmSync(parent, { recursive: true, force: true }));
  const provider = await startProvider();
  t.after(provider.close);
  const [port = 0] = await freePorts(1);
  const DIR = join(parent, "made");
  // Without a space, because $PRIVATE is several words of the command line.
  const caFile = join(mkdtempSync(join(tmpdir(), "mandate-ca-")), "ca.pem");
  t.after(() => rmSync(dirname(caFile), { recursive: true }));
  writeFileSync(caFile, provider.ca);
  const commands = commandsOf(readFileSync(join(ROOT, "scripts/README.md"), "utf8"), "First steps");
  assert.ok(commands.length >= 8 && commands.length < 10, "with npm ci, ten at most");
  const shell = spawn("bash", ["-e", "-u", "-o", "pipefail", "-s"], {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "pipe"],
    env: {
      ...process.env,
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      DIR,
      ISSUER: `https://localhost:${port}`,
      PROVIDER: provider.issuer,
      APP,
      PRIVATE: `--provider-ca ${caFile} --provider-network 127.0.0.1/32 --provider-network ::1/128`,
      USER_SUB: "alice",
      ID_TOKEN: await idTokenOf(provider, "alice"),
    },
  });
  // As the page says; a second signal ends the time in which the server waits for its balancer.
  shell.stdin.end(`trap 'kill %1; sleep 0.2; kill %1; wait' EXIT\n${commands.join("\n")}\n`);
  const [out, errors, [code]] = await Promise.all([
    shell.stdout.setEncoding("utf8").toArray(),
    shell.stderr.setEncoding("utf8").toArray(),
    new Promise<[number | null]>((resolve) => shell.once("exit", (status) => resolve([status]))),
  ]);
  const said = out.join("");
  assert.equal(code, 0, `${said}\n${errors.join("")}`);
  assert.match(said, /config\.json: errors 0, /);
  assert.match(said, /sub: 'alice'/);
  assert.match(said, /act: \{ sub: 'spiffe:\/\/localhost\/agents\/planner' \}/);
  assert.match(said, /aud: 'https:\/\/api\.example'/);
  assert.match(said, / token_exchange\.delegation allow .*subject=alice /);
  for (const name of ["config.json", "keys/encryption-key", "clients/planner"]) {
    assert.equal(statSync(join(DIR, name)).mode & 0o777, 0o600, name);
  }
});
