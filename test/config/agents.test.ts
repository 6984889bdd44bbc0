/** The `agents` section of the configuration: whom it names, and which texts are refused. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig } from "../../src/config/config.ts";
import { AGENT_TITLE_CHARS_MAX, SHOWN_TEXT_CHARS_MAX } from "../../src/limits/input.ts";

const workload = (path: string): string => `spiffe://dev.example/${path}`;
const PLANNER = workload("agents/planner");
let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
});
after(() => rmSync(parent, { recursive: true, force: true }));

function load(agents: unknown, patch: object = {}) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  writeFileSync(file, JSON.stringify({ ...base, agents, ...patch }));
  return loadConfig(file);
}

/** What is said of the section, as errors or as warnings. */
function saidOf(agents: unknown, patch: object = {}): readonly string[] {
  const loaded = load(agents, patch);
  const said = loaded.ok ? loaded.value.warnings : loaded.error;
  return said.filter((one) => one.startsWith("agents"));
}

test("NAME-D-1 agents are named by workload, prefix, client and issuer", () => {
  const agents = {
    [PLANNER]: {
      title: { en: "Planner", de: "Planer" },
      purpose: "Plans.",
      owner: "Travel",
      contact: "x@example.com",
    },
    [workload("crew/*")]: { title: "Crew" },
    "nightly-report": { title: "Report" },
    c_abc: { title: "Registered" },
  };
  const loaded = load(agents);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.deepEqual([...loaded.value.settings.agents.named], Object.entries(agents));
  assert.deepEqual(saidOf(agents), []);
});

describe("NAME-D-1 a name that is none", () => {
  for (const id of [
    "spiffe://td.example",
    "SPIFFE://td.example/a",
    "spiffe://td.example/a/",
    "crew/*",
    "platform://acme/a/*",
    "https://a.example/b/*",
    "two words",
    "\u202ex",
    "x".repeat(3000),
  ]) {
    test(`${id.slice(0, 30)} is refused`, () => {
      const [said = ""] = saidOf({ [id]: { title: "X" } });
      assert.ok(said.length < 400);
      assert.match(said, /^agents\..*: is neither a SPIFFE ID, a client_id nor an issuer; only a prefix/s);
    });
  }
});

test("NAME-D-1, PLAT-D-8 a workload of a platform is named by its id, or all of a registration", () => {
  const trusted = {
    "https://acme.example": {
      keys: { discover: true },
      workloads: { acme: { tenancy: "dedicated", subjects: ["*"], uses: ["actor", "client"] } },
    },
  };
  const agents = { "platform://acme/a%2Fb": { title: "One" }, "platform://acme/*": { title: "Any" } };
  const rule = { id: "of-acme", allow: "client_credentials", actors: ["platform://acme/*"] };
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const policies = [...base.policies, { ...rule, targets: ["https://api.example"], scopes: ["trips.read"] }];
  const patch = { trustedIssuers: { ...base.trustedIssuers, ...trusted } };
  assert.deepEqual(saidOf(agents, { ...patch, policies }), []);
  assert.deepEqual(saidOf(agents, patch), Object.keys(agents).map(unnamed));
  assert.deepEqual(saidOf(agents), [
    "agents.platform://acme/a%2Fb: names no workload: no issuer has such a registration in its workloads",
    "agents.platform://acme/*: names no workload: no issuer has such a registration in its workloads",
  ]);
});

const unnamed = (id: string): string =>
  `agents.${id}: is in no rule, target or client, so that it never acts here: correct or remove it`;

test("NAME-D-1 an agent of a configured trust domain that no rule, target or client names is warned of", () => {
  const named = [PLANNER, workload("agents/*"), workload("crew/ana"), workload("*")];
  const others = [workload("agents/plannner"), workload("crews/*")];
  const agents = Object.fromEntries([...named, ...others].map((id) => [id, { title: `Agent ${id}` }]));
  assert.deepEqual(saidOf(agents), others.map(unnamed));
});

test("NAME-D-1 what names nothing is warned of, with what is perhaps meant", () => {
  assert.deepEqual(saidOf({ "spiffe://other.example/a": { title: "X" } }), [
    "agents.spiffe://other.example/a: names no workload: other.example is none of trustDomains",
  ]);
  assert.deepEqual(saidOf({ "nightly-reprot": { title: "X" } }), [
    'agents.nightly-reprot: names no client, issuer or partner that is configured: "nightly-report" is perhaps meant',
  ]);
  assert.deepEqual(saidOf({ "https://a.example/b": { title: "X" } }), [
    "agents.https://a.example/b: names no client, issuer or partner that is configured",
  ]);
});

test("NAME-D-3 titles of two agents that are alike are warned of", () => {
  const [one, other] = [PLANNER, workload("agents/booking")];
  assert.deepEqual(saidOf({ [one]: { title: "Planner" }, [other]: { title: "PIanner" } }), [
    `agents.${other}.title: "PIanner" looks like "Planner", the title of another agent`,
  ]);
  assert.deepEqual(saidOf({ [one]: { title: "Planner" }, [other]: { title: "Planner" } }), [
    `agents.${other}.title: "Planner" is also the title of ${one}: give each agent a title of its own`,
  ]);
});

test("NAME-D-3 one agent under several ids is not warned of: a client and its workload, a prefix and what it names", () => {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const secrets = ["inline-secret-of-forty-three-characters-0001"];
  const clients = { ...base.clients, planner: { method: "client_secret", workload: PLANNER, secrets } };
  const title = "Planner";
  const agents = { [PLANNER]: { title }, planner: { title }, [workload("agents/*")]: { title } };
  assert.deepEqual(saidOf(agents, { clients }), []);
});

const unseen = "has a character that is not shown, or that reorders others: leave out ";
const refused: readonly (readonly [what: string, entry: object, said: string])[] = [
  ["no title", {}, "title: is missing"],
  ["an empty title", { title: "" }, "title: has nothing that people see"],
  ["a title of spaces", { title: "  \u00a0\u3000" }, "title: has nothing that people see"],
  ["a title of zero-width spaces", { title: "\u200b\u200b" }, `title: ${unseen}U+200B`],
  ["a title of Braille blanks", { title: "\u2800\u2800" }, "title: has nothing that people see"],
  ["a right-to-left override", { title: "a\u202eb" }, `title: ${unseen}U+202E`],
  ["an isolate", { title: "a\u2066b" }, `title: ${unseen}U+2066`],
  ["a zero-width joiner", { title: "a\u200db" }, `title: ${unseen}U+200D`],
  ["a control", { title: "a\u0007b" }, `title: ${unseen}U+0007`],
  ["a line break", { purpose: "a\nb", title: "X" }, `purpose: ${unseen}U+000A`],
  ["a tag character", { title: "a\u{e0041}b" }, `title: ${unseen}U+E0041`],
  [
    "a flood of marks",
    { title: `a${"\u0301".repeat(50)}` },
    "title: has more than three combining marks on one letter",
  ],
  [
    "a long title",
    { title: "x".repeat(10_000) },
    `title: is longer than ${AGENT_TITLE_CHARS_MAX} characters`,
  ],
  [
    "a long owner",
    { title: "X", owner: "x".repeat(201) },
    `owner: is longer than ${SHOWN_TEXT_CHARS_MAX} characters`,
  ],
  [
    "a bad language",
    { title: { "not a tag": "X" } },
    'title: has a name that is no language tag such as "en" or "de-AT"',
  ],
  [
    "a long language",
    { title: { ["e".repeat(1024)]: "X" } },
    'title: has a name that is no language tag such as "en" or "de-AT"',
  ],
  ["no language", { title: {} }, "title: names no language"],
  [
    "__proto__ as language",
    { title: JSON.parse('{"__proto__":"X","en":"Y"}') },
    "title.__proto__: is a name that cannot be used",
  ],
  ["a bad text of a language", { title: { en: "X", de: "a\u202eb" } }, `title.de: ${unseen}U+202E`],
  ["a number", { title: 7 }, 'title: is neither a text nor texts by language, such as { "en": …, "de": … }'],
  ["an unknown member", { title: "X", motto: "Y" }, "motto: is not a known setting"],
];
for (const [what, entry, said] of refused) {
  test(`NAME-D-4, NAME-D-5 an agent with ${what} is refused with its path`, () =>
    assert.deepEqual(saidOf({ [PLANNER]: entry }), [`agents.${PLANNER}.${said}`]));
}

test("NAME-D-4 text in any script, with the spaces of its typography, is taken", () => {
  for (const title of ["予約係", "Планировщик", "مخطط الرحلات", "Qui\u00a0? Lui\u202f!", "नियोजक"]) {
    assert.deepEqual(saidOf({ [PLANNER]: { title } }), [], title);
  }
});

test("agents that are no object are refused", () =>
  assert.deepEqual(saidOf([]), ["agents: is not an object"]));
