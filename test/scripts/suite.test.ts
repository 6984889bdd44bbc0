/** The suite for any authorization server: run against this one, and its table held to the register. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { before, test } from "node:test";
import { MAIN } from "../../scripts/server-process.ts";
import { adapter, startMandate } from "../../scripts/suite/adapters/mandate.ts";
import { makeAuthority, makeCertificate } from "../../scripts/suite/certificates.ts";
import { AREAS } from "../../scripts/suite/checks/all.ts";
import { levelOf } from "../../scripts/suite/levels.ts";
import { toJson, toJunit, toText } from "../../scripts/suite/report.ts";
import { type Run, runSuite } from "../../scripts/suite/runner.ts";
import { failedAt } from "../../scripts/trials/suite-control.ts";
import { MUTATIONS } from "../../scripts/trials/suite-mutations.ts";

const ROOT = join(import.meta.dirname, "../..");
const SUITE = "scripts/suite";
const checks = AREAS.flatMap(({ checks: some }) => some);

let run: Run;
before(async () => {
  run = await runSuite({ ...adapter, start: startMandate(MAIN) });
});

test("the suite passes at this server: no check failed, is not offered or could not be asked", () => {
  const others = run.results.filter(({ outcome }) => outcome !== "passed");
  assert.deepEqual(others, []);
  assert.equal(run.results.length, checks.length);
});

test("each check of the suite has an id of its own, a clause of the register with its level, and a basis that is asked before it", () => {
  const clauses = new Map(
    globSync("test/clauses/*.json", { cwd: ROOT }).flatMap((file) =>
      [...readFileSync(join(ROOT, file), "utf8").matchAll(/"id":\s*"([^"]+)",\s*"level":\s*"(\w+)/g)].map(
        ([, id = "", level = ""]) => [id, level] as const,
      ),
    ),
  );
  const asked = new Set<string>();
  for (const { id, clause, basis } of checks) {
    assert.ok(!asked.has(id), id);
    assert.ok(clauses.has(clause), `${id}: ${clause}`);
    const ours = /^PROD-|-D-/.test(clause);
    assert.equal(levelOf(clause), ours ? "own" : clauses.get(clause)?.replace("DECIDE", "MUST"), clause);
    assert.ok(basis === undefined || asked.has(basis), `${id} rests on ${basis}`);
    asked.add(id);
  }
  assert.ok(checks.length >= 180);
});

test("the suite imports nothing but Node and its own files", () => {
  for (const file of globSync(`${SUITE}/**/*.ts`, { cwd: ROOT })) {
    const text = readFileSync(join(ROOT, file), "utf8");
    for (const [, from = ""] of text.matchAll(/(?:from|import\() ?"([^"]+)"/g)) {
      const own = from.startsWith(".") && join(file, "..", from).startsWith(SUITE);
      assert.ok(own || from.startsWith("node:"), `${file} imports ${from}`);
    }
  }
});

test("an adapter has at most 60 lines, beside a configuration that is data", () => {
  for (const file of globSync(`${SUITE}/adapters/*.ts`, { cwd: ROOT, exclude: ["**/*-configuration.ts"] }))
    assert.ok(readFileSync(join(ROOT, file), "utf8").split("\n").length <= 61, file);
});

test("the reports of the suite have each check and what was sent, and no secret", () => {
  const [json, junit, text] = [toJson(run), toJunit(run), toText(run, true)];
  assert.equal(JSON.parse(json).counts.passed, checks.length);
  assert.equal(junit.match(/<testcase /g)?.length, checks.length);
  for (const report of [json, junit, text]) {
    for (const { id } of checks) assert.ok(report.includes(id));
    // A compact JWS with its signature, or the password of HTTP Basic.
    assert.doesNotMatch(report, /eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{10}/);
    assert.doesNotMatch(report, /basic [\w+/=]{20}/i);
  }
});

test("what cannot begin is said in one line, with the exit code 2, and no feature is overlooked", () => {
  const words = ["--client", "c", "--secret", "s", "--offers", "metadatas"];
  const told = spawnSync(process.execPath, [join(ROOT, SUITE, "run.ts"), ...words], { encoding: "utf8" });
  assert.equal(told.status, 2);
  assert.match(told.stderr, /^--offers: metadatas is none of metadata, .*\n$/);
});

test("a check of a part that no client plays at a server that was set up by hand cannot be asked", async () => {
  const authority = makeAuthority("Authority");
  const { key, cert } = makeCertificate("one", { ips: ["127.0.0.1"] }, authority, { usage: "server" });
  const server = createServer({ key, cert }, (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"access_token":"t","token_type":"Bearer"}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const tokenEndpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
  try {
    const { results } = await runSuite(
      {
        ...{ server: "one", tokenEndpoint },
        offers: ["client_credentials", "client_secret_post"],
        roles: { machine: { id: "c", secret: "s", method: "client_secret_basic" } },
      },
      { issuer: new URL(tokenEndpoint).origin, ca: authority.cert, only: ["client.body"] },
    );
    assert.deepEqual(
      results.map(({ id, outcome, note }) => [id, outcome, note]),
      [
        ["token.credentials", "passed", ""],
        ["client.body", "could not be asked", "no client plays the part of second"],
        ["client.body-wrong-secret", "could not be asked", "the good request of client.body did not pass"],
      ],
    );
  } finally {
    server.close();
  }
});

/** A line of the server and one of the exchange; `npm run trials -- suite-control` asks all of them, with the whole suite. */
const BROKEN = ["RFC8414-3.3-1", "RFC8693-4.1-5"];

for (const clause of BROKEN) {
  const mutation = MUTATIONS.find(([, , , broken]) => broken === clause);
  test(`the suite names the clause that a server breaks: ${clause}`, async () => {
    assert.ok(mutation);
    assert.ok((await failedAt(mutation, "clause")).includes(clause));
  });
}

test("each line that the negative control changes stands once in its file", () => {
  for (const [file, from] of MUTATIONS)
    assert.equal(readFileSync(join(ROOT, "src", file), "utf8").split(from).length, 2, `${file}: ${from}`);
});
