/** What could ever be reached under a policy: by hand, and against brute force in small random configurations. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseCommand } from "../support/host.ts";
import { compareReach } from "../support/reach-worlds.ts";
import { rounds } from "../support/rounds.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const PLANNER = "spiffe://td.example/agents/planner";
const BOOKING = "spiffe://td.example/agents/booking";
const folder = mkdtempSync(join(tmpdir(), "mandate reach "));
after(() => rmSync(folder, { recursive: true, force: true }));

const allows = (members: object) => ({
  ...{ allow: "delegation", subjects: { issuers: [IDP] }, consent: "record", scopes: ["read"] },
  ...members,
});
const FIRST = allows({
  id: "first",
  actors: [PLANNER],
  subjectToken: { audiences: [ISSUER] },
  targets: ["desk"],
  scopes: ["read", "write"],
});
const ONWARD = allows({
  id: "onward",
  actors: [BOOKING],
  subjectToken: { audiences: ["self"] },
  targets: ["vault"],
});

const CONFIG = {
  version: 1,
  issuer: ISSUER,
  listen: { host: "0.0.0.0", port: 8443, tls: { key: { file: "no-key" }, cert: { file: "no-cert" } } },
  store: { sqlite: "no-store" },
  keys: { encryptionKey: { file: "no-encryption-key" } },
  audit: { instance: "as-1" },
  trustDomains: { "td.example": { bundle: { file: "no-bundle" } } },
  trustedIssuers: { [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep" } },
  targets: [
    { names: ["desk"], owners: [BOOKING], scopes: ["read", "write"] },
    { names: ["vault"], scopes: ["read"] },
  ],
  policies: [FIRST, ONWARD],
  drafts: ["draft-ietf-oauth-spiffe-client-auth-02"],
};

let files = 0;
const save = (content: unknown): string => {
  const file = join(folder, `${files++}.json`);
  writeFileSync(file, JSON.stringify(content));
  return file;
};

async function run(
  patch: object,
  ...args: string[]
): Promise<{ code: number; out: string[]; err: string[] }> {
  const command = await parseCommand(["policy", ...args, "--config", save({ ...CONFIG, ...patch })]);
  assert.ok(command.ok && command.value.on === "files", JSON.stringify(command));
  const [out, err]: [string[], string[]] = [[], []];
  const code = await command.value.run({
    print: (line) => out.push(line),
    printError: (line) => err.push(line),
  });
  return { code, out, err };
}

test("REACH-D-1 what is reached is told by the rules on the way; an issuer may sign for any audience", async () => {
  const { code, out } = await run({}, "reach");
  assert.deepEqual(out, [
    `${PLANNER} for any subject of ${IDP}`,
    "  at desk: read write (first)",
    `${BOOKING} for any subject of ${IDP}`,
    "  at vault: read (onward)",
  ]);
  assert.equal(code, 0);
});

test("REACH-D-6 an actor reaches also what others ask for with a token that came of its request", async () => {
  const reached = await run({}, "reach", "--actor", PLANNER, "--target", "vault");
  assert.deepEqual(reached.out, [
    `${BOOKING} for any subject of ${IDP}`,
    `  at vault: read after ${PLANNER} (first, onward)`,
  ]);
  const alone = await run(
    { policies: [FIRST, { ...ONWARD, subjectToken: { audiences: [ISSUER] } }] },
    "reach",
    "--actor",
    PLANNER,
    "--target",
    "vault",
  );
  assert.deepEqual(
    [alone.code, alone.out[0]?.startsWith("No:")],
    [1, true],
    "not a token that came of no request of the actor",
  );
});

test("with --depth, what takes more requests is not reached", async () => {
  const asked = ["--actor", PLANNER, "--target", "vault"];
  assert.equal((await run({}, "reach", ...asked, "--depth", "2")).code, 0);
  const { code, out } = await run({}, "reach", ...asked, "--depth", "1");
  assert.deepEqual([code, out[0]?.startsWith("No within 1 requests:")], [1, true]);
});

test("a subject that a rule names, or that is asked about, is told apart from the others of its issuer", async () => {
  const policies = [{ ...FIRST, subjects: { issuers: [IDP], subs: ["alice"] } }, ONWARD];
  const of = async (sub: string) =>
    (await run({ policies }, "reach", "--issuer", IDP, "--subject", sub)).out.length;
  assert.deepEqual([await of("alice"), await of("bob")], [4, 2]);
});

test("REACH-D-2 callers that the configuration does not admit reach nothing", async () => {
  const trustDomains = { "td.example": { bundle: { file: "no-bundle" }, admit: [BOOKING] } };
  assert.equal((await run({ trustDomains, policies: [FIRST] }, "reach")).code, 1);
});

test("REACH-D-3 what a rule demands of details is taken as given", async () => {
  const details = { note: { governs: ["read"], fields: { of: { is: "string", narrows: "equal" } } } };
  const targets = [{ ...CONFIG.targets[0], details }, CONFIG.targets[1]];
  assert.equal((await run({ targets, policies: [{ ...FIRST, demands: ["note"] }] }, "reach")).code, 0);
});

test("REACH-D-4 an unknown actor, issuer or target is refused", async () => {
  for (const [args, want] of [
    [["--target", "vaultt"], /"vaultt" is no target: "vault" is perhaps meant/],
    [["--actor", "spiffe://other.example/x"], /is no client of the configuration/],
    [
      ["--issuer", "https://idp.exampel", "--subject", "alice"],
      /is no trusted issuer: "https:\/\/idp.example" is perhaps/,
    ],
  ] as const) {
    const { code, err } = await run({}, "reach", ...args);
    assert.deepEqual([code, want.test(err.join())], [2, true], err.join());
  }
});

test("REACH-D-5 a name in the diagram is text, and opens nothing", async () => {
  const name = 'x"]; click n0 "javascript:alert(1)" <b>\u202e';
  const targets = [{ ...CONFIG.targets[0], names: [name] }, CONFIG.targets[1]];
  const policies = [{ ...FIRST, targets: [name] }];
  const { out } = await run({ targets, policies }, "reach", "--format", "mermaid");
  assert.deepEqual(out.slice(0, 4), [
    "flowchart LR",
    `  n0(["any subject of ${IDP}"])`,
    `  n1["${PLANNER}"]`,
    '  n2[("x#34;#93;#59; click n0 #34;javascript:alert#40;1#41;#34; #60;b#62;#92;u#123;202e#125;")]',
  ]);
});

test("REACH-D-1, REACH-D-6, REACH-D-7 what is reached is what brute force finds, and each no has a certificate that changes break", async () => {
  // In the first, a job gives more than none; in the second, workloads of one prefix act for each other.
  for (const seed of [284_843_670, 1_554_768_927]) {
    const { facts, noes, mutants } = await compareReach(rounds(1), seed, join(folder, "random.json"));
    assert.ok(facts > 0 && noes > 0 && mutants > 0);
  }
});

test("REACH-D-7 a bounded no has no certificate", async () => {
  const asked = ["reach", "--actor", PLANNER, "--target", "vault", "--json"];
  const { out } = await run({}, ...asked, "--depth", "1");
  assert.deepEqual(JSON.parse(out.join()), { reached: false, grants: [] });
});

test("REACH-D-8 what must never be reached fails the vectors with the way there", async () => {
  const never = (actor: string, target: string) => ({ name: `${target} never`, never: { actor, target } });
  const file = (...vectors: object[]): string[] => ["test", save(vectors)];
  const good = await run({ policies: [FIRST] }, ...file(never(PLANNER, "vault")));
  assert.deepEqual(
    [good.code, good.out],
    [0, ["ok    vault never  never reached", "1 of 1 vectors passed."]],
  );
  const bad = await run({}, ...file(never(BOOKING, "desk"), never(PLANNER, "vault")));
  assert.deepEqual(bad.out, [
    "ok    desk never   never reached",
    "FAIL  vault never  reached",
    `      ${BOOKING} for any subject of ${IDP}`,
    `        at vault: read after ${PLANNER} (first, onward)`,
    "1 of 2 vectors passed.",
  ]);
  assert.equal(bad.code, 1);
  const json = await run({}, ...file(never(PLANNER, "vault")), "--json");
  assert.deepEqual([json.code, JSON.parse(json.out.join()).passed], [1, false]);
  for (const wrong of [never(PLANNER, "vaultt"), never("planer", "vault"), { name: "x", never: {} }]) {
    assert.equal((await run({}, ...file(wrong))).code, 2);
  }
});
