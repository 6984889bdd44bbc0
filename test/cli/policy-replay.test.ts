/** What commands make of the trail of a service that was asked for tokens of every kind that a machine gets. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../scripts/command-line.ts";
import { basic } from "../../scripts/http-client.ts";
import { eventHash } from "../../src/adapters/audit/chain.ts";
import type { Recorded } from "../../src/audit/recorded.ts";
import { unsafeIn } from "../../src/audit/safe-text.ts";
import { worldOf } from "../../src/cli/policy/world.ts";
import { countEvent, nothingCounted } from "../../src/cli/report/gather.ts";
import { modelOf } from "../../src/cli/report/model.ts";
import { pagesOf } from "../../src/cli/report/pages.ts";
import { document } from "../../src/cli/report/parts.ts";
import { loadSettings } from "../../src/config/config.ts";
import { gather } from "../../src/policy/replay.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { canonicalize } from "../../src/spec/rfc8785.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { API, LEGACY, openToTravellers, PARTNER, SECRET, type Travellers } from "../support/travellers.ts";
import { IDP, workload } from "../support/world.ts";

type Service = Awaited<ReturnType<typeof makeService>>;
let travellers: Travellers<Service>;
let configFile: string;
const folder = mkdtempSync(join(tmpdir(), "mandate replay "));
const exported = join(folder, "export");

before(async () => {
  const audit = { instance: "test", checkpoint: { events: 30 } };
  travellers = await openToTravellers((extra, options) =>
    makeService({ ...extra, audit }, { ...options, inFile: true }),
  );
  const { world, exchange, fromIdToken, delegated } = travellers;
  ({ configFile } = world);
  await world.consent("u-1", "clerk", PARTNER, ["trips.read"]);
  for (const form of [
    { audience: PARTNER },
    { audience: PARTNER, scope: "trips.read" },
    { audience: API },
    { audience: "unknown" },
    { audience: PARTNER, scope: "other" },
    { audience: "desk" },
  ]) {
    await exchange(form);
    await exchange(form, { by: "agents/planner" });
    await exchange(form, { by: "clerk" });
    await exchange(form, { actor: false });
  }
  await exchange({ audience: LEGACY }, { by: "clerk" });
  await exchange({ ...(await delegated()), audience: API });
  await fromIdToken();
  await fromIdToken({ scope: "none" });
  await world.token({ grant_type: "client_credentials" }, { authorization: basic("nameless", SECRET) });
  await world.token({ grant_type: "client_credentials" }, { authorization: basic("app", "wrong") });
  const made = await runCommandLine(["audit", "export", exported, "--config", configFile]);
  assert.equal(made.code, 0, made.err);
});

after(() => stop(travellers?.world, () => rmSync(folder, { recursive: true, force: true })));

const replay = (...words: string[]) => runCommandLine(["policy", "replay", ...words]);
const asJson = async (...words: string[]) => {
  const { code, out, err } = await replay(...words, "--format", "json");
  assert.notEqual(code, 2, err);
  return { code, told: JSON.parse(out) };
};

/** The configuration of the server with other rules. */
function changed(
  name: string,
  change: (config: { policies: JsonObject[]; agents?: object }) => void,
): string {
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  change(config);
  const file = join(travellers.world.folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const eventsIn = (of: string): JsonObject[] =>
  readFileSync(join(of, "events.ndjson"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("REPL-D-1, REPL-D-4 every request comes out the same, from the store and from an export", async () => {
  const decided = eventsIn(exported).filter(({ facts }) => facts !== undefined).length;
  assert.ok(decided > 25);
  for (const place of [
    ["--config", configFile],
    ["--export", exported],
  ]) {
    const { code, told } = await asJson(...place);
    assert.deepEqual([code, told.same, told.different], [0, decided, 0], JSON.stringify(told));
    assert.deepEqual(Object.keys(told.apart), []);
  }
  const { code, out } = await replay("--export", exported);
  assert.deepEqual(
    [code, out.split("\n")[0]],
    [0, `Decided again: ${decided} requests, ${decided} came out the same, 0 did not.`],
  );
  const late = await asJson("--export", exported, "--since", "2100-01-01T00:00:00Z");
  assert.deepEqual([late.code, late.told.same], [0, 0]);
  const lately = await asJson("--export", exported, "--since", "1h");
  assert.equal(lately.told.same, decided);
});

test("REPL-D-4 a change of the policy flips exactly the requests that its rules decided", async () => {
  const at = (id: string) => (one: JsonObject) => (one.policy as JsonObject | undefined)?.rule_id === id;
  const lost = eventsIn(exported).filter(at("booking-abroad"));
  assert.ok(lost.length > 1);
  const file = changed("without", (config) => {
    config.policies = config.policies.filter(({ id }) => id !== "booking-abroad");
    config.agents = { [workload("agents/booking")]: { title: "The booking agent" } };
  });
  const { code, told } = await asJson("--export", exported, "--with", file);
  assert.deepEqual([code, told.different, told.with.refused, told.with.allowed], [1, 0, lost.length, 0]);
  const [group] = told.with.groups;
  assert.deepEqual(
    [group.change, group.rule, group.caller, group.title, group.count],
    ["refused", "booking-abroad", workload("agents/booking"), "The booking agent", lost.length],
  );
  assert.equal(group.examples[0].id, lost[0]?.id);
  const { out } = await replay("--config", configFile, "--with", file);
  assert.match(
    out,
    new RegExp(`^By the new policy: ${lost.length} requests would be refused, 0 would be`, "m"),
  );
  assert.match(out, /^Would be refused:\n {2}rule "?booking-abroad"?, "The booking agent" \("?spiffe:/m);
});

test("REPL-D-4 a wider rule allows what was refused, and a shorter one gives something else", async () => {
  const file = changed("wider", (config) => {
    config.policies = config.policies.map((rule) =>
      rule.id === "clerk" ? { ...rule, consent: "implied", acknowledge: "subjects-not-asked" } : rule,
    );
  });
  const wider = await asJson("--export", exported, "--with", file);
  assert.equal(wider.code, 1);
  assert.equal(wider.told.with.refused, 0);
  assert.ok(wider.told.with.allowed > 0);
  const shorter = changed("shorter", (config) => {
    config.policies = config.policies.map((rule) =>
      rule.id === "booking-here" ? { ...rule, lifetimeSeconds: 60 } : rule,
    );
  });
  const { told } = await asJson("--export", exported, "--with", shorter);
  assert.deepEqual([told.with.refused, told.with.allowed], [0, 0]);
  assert.ok(told.with.changed > 0);
  const same = await asJson("--export", exported, "--with", configFile);
  assert.deepEqual([same.code, same.told.with.groups], [0, []]);
});

// --- impact -----------------------------------------------------------------------------------------------------

const impact = async (...words: string[]) => {
  const { code, out, err } = await runCommandLine(["policy", "impact", ...words]);
  return { code, out, err, told: words.includes("json") && code !== 2 ? JSON.parse(out) : undefined };
};
const inExport = () => ["--export", exported, "--config", configFile];

test("IMPACT-D-1 a rule that goes hurts those that it allowed, by title and last use, and another rule steps in", async () => {
  const decidedBy = (id: string) =>
    eventsIn(exported).filter(
      (one) => one.granted !== undefined && (one.policy as JsonObject | undefined)?.rule_id === id,
    );
  const lost = decidedBy("booking-abroad");
  const { code, told } = await impact("--without-rule", "booking-abroad", ...inExport(), "--format", "json");
  assert.deepEqual([code, told.hurt, told.downstream, told.living_tokens], [1, lost.length, 0, undefined]);
  assert.deepEqual(told.agents, [
    { agent: workload("agents/booking"), count: lost.length, last: lost.at(-1)?.time },
  ]);
  assert.deepEqual(
    told.subjects.map(({ sub }: JsonObject) => sub),
    ["u-1"],
  );
  const twice = changed("twice", (config) => {
    const rule = config.policies.find(({ id }) => id === "booking-abroad");
    config.policies.push({ ...rule, id: "z-same" }, { ...rule, id: "z-less", scopes: ["trips.read"] });
    config.agents = { [workload("agents/booking")]: { title: "The booking agent" } };
  });
  const steps = ["--export", exported, "--config", twice, "--format", "json"];
  const same = await impact("--without-rule", "booking-abroad", ...steps);
  assert.deepEqual([same.code, same.told.hurt, same.told.same], [0, 0, lost.length]);
  const narrower = changed("narrower", (config) => {
    const rule = config.policies.find(({ id }) => id === "booking-abroad");
    config.policies.push({ ...rule, id: "z-less", scopes: ["trips.read"] });
  });
  const less = await impact(
    "--without-rule",
    "booking-abroad",
    ...inExport().with(3, narrower),
    "--format",
    "json",
  );
  assert.deepEqual([less.told.hurt, less.told.less > 0], [0, true]);
  const gone = await impact("--without-rule", "apps", ...inExport().with(3, twice));
  assert.equal(gone.code, 1);
  assert.match(
    gone.out,
    /^Without the rule apps, \d+ requests would be refused: of 1 agents, for 1 subjects/,
  );
});

test("IMPACT-D-2 a rule at the head of a chain hurts those behind it", async () => {
  const { told } = await impact("--without-rule", "to-booking", ...inExport(), "--format", "json");
  const agents = told.agents.map(({ agent }: JsonObject) => agent);
  assert.deepEqual(agents.toSorted(), [workload("agents/booking"), workload("agents/planner")]);
  assert.ok(told.downstream > 0 && told.downstream < told.hurt);
});

test("IMPACT-D-1 without a client, a domain or a subject its requests are refused, and its living tokens end", async () => {
  const booking = workload("agents/booking");
  const allowed = (is: (one: JsonObject) => boolean) =>
    eventsIn(exported).filter((one) => one.granted !== undefined && is(one)).length;
  const [by, ofDomain, about] = await Promise.all([
    impact("--without-client", booking, ...inExport(), "--format", "json"),
    impact("--without-domain", new URL(booking).host, ...inExport(), "--format", "json"),
    impact("--disable", "u-1", "--issuer", IDP, ...inExport(), "--format", "json"),
  ]);
  assert.equal(
    by.told.hurt - by.told.downstream,
    allowed(({ client }) => (client as JsonObject).workload === booking),
  );
  assert.equal(
    ofDomain.told.hurt,
    allowed(({ client }) => (client as JsonObject).workload !== undefined),
  );
  assert.equal(
    about.told.hurt,
    allowed(({ subject }) => (subject as JsonObject | undefined)?.sub === "u-1"),
  );
  const stored = await impact("--without-client", booking, "--config", configFile, "--format", "json");
  assert.equal(stored.told.hurt, by.told.hurt);
  assert.ok(stored.told.living_tokens > 0);
});

test("IMPACT-D-3 what nothing names is refused, and so are words that do not fit", async () => {
  const cases: readonly [words: string[], says: RegExp][] = [
    [["--without-rule", "booking-aboard"], /"booking-aboard" is no rule: "booking-abroad" is perhaps meant/],
    [["--without-client", "no-one"], /no event and no entry of the configuration names the client "no-one"/],
    [["--without-domain", "td.exampel"], /is no trust domain/],
    [["--disable", "u-9", "--issuer", IDP], /no event names the subject "u-9"/],
    [["--disable", "u-1", "--issuer", `${IDP}/`], /is no trusted issuer/],
    [["--disable", "u-1"], /--disable and --issuer require each other/],
    [[], /give exactly one of/],
    [["--without-rule", "apps", "--since", "30x"], /--since is neither/],
  ];
  for (const [words, says] of cases) {
    const { code, err } = await impact(...words, ...inExport());
    assert.equal(code, 2, words.join());
    assert.match(err, says);
  }
});

test("CHANGE-D-2 mandate explain tells the operator the smallest change of a refusal, as a suggestion", async () => {
  const file = join(folder, "question.json");
  const subjectClaims = { iss: IDP, sub: "u-1", aud: travellers.world.issuer, scope: "trips.read" };
  const [actor, iat] = [workload("clerk"), Math.floor(Date.now() / 1000)];
  const times = { iat, exp: iat + 600 };
  const question = { client: actor, actor, subjectClaims: { ...subjectClaims, ...times }, target: API };
  writeFileSync(file, JSON.stringify(question));
  const { code, out } = await runCommandLine(["explain", file, "--config", configFile]);
  assert.equal(code, 1);
  assert.match(
    out,
    /^A suggestion, which is not applied and not told to the caller: .* by rule \S+:\n {2}Add "/m,
  );
  const json = await runCommandLine(["explain", file, "--json", "--config", configFile]);
  const { suggestion } = JSON.parse(json.out);
  assert.equal(suggestion.changes[0].adds, actor);
  assert.equal(suggestion.changes[0].member, "actors");
});

// --- report -----------------------------------------------------------------------------------------------------

/** The one name of a tag, or of an attribute, that a page of a report may have. */
const TAGS =
  /^(?:!doctype|html|head|meta|title|style|body|header|nav|main|footer|p|a|h1|h2|h3|ul|li|strong|span|div|svg|path|g|rect|text|details|summary|table|thead|tbody|tr|th|td|bdi|code|time|dl|dt|dd)$/;

function assertHarmless(file: string, text: string): void {
  const tags = [...text.replace(/<style>[\s\S]*?<\/style>/, "").matchAll(/<\/?([^\s>/]+)([^>]*)>/g)];
  for (const [, name = "", rest = ""] of tags) {
    assert.match(name, TAGS, `${file}: ${name}`);
    for (const [, attribute = ""] of rest.replace(/"[^"]*"/g, "").matchAll(/([^\s=]+)=?/g))
      assert.doesNotMatch(attribute, /^(?:on|style|src)/i, `${file}: ${attribute}`);
    for (const [, href = ""] of rest.matchAll(/href="([^"]*)"/g))
      assert.match(href, /^[a-z]+(?:-\d+)?\.html$/, file);
  }
  assert.match(
    text,
    /<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src/,
  );
  assert.equal(unsafeIn(text.replaceAll("\n", "")), undefined, file);
}

test("REPORT-D-1, REPORT-D-3 a report is a folder of pages without scripts, of the events and of what is allowed", async () => {
  const made = join(folder, "report");
  const titled = changed("titled", (config) => {
    config.agents = { [workload("agents/booking")]: { title: "The booking agent" } };
  });
  const { code, out, err } = await runCommandLine(["report", made, "--config", titled]);
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /index\.html"?: \d+ events, 6 agents, 1 people\.$/m);
  const pages = readdirSync(made).filter((name) => name.endsWith(".html"));
  const texts = new Map(pages.map((name) => [name, readFileSync(join(made, name), "utf8")]));
  for (const [name, text] of texts) {
    assertHarmless(name, text);
    for (const [, to = ""] of text.matchAll(/href="([^"]+)"/g))
      assert.ok(texts.has(to), `${name} leads to ${to}`);
  }
  assert.match(texts.get("index.html") ?? "", /The booking agent/);
  assert.match(texts.get("index.html") ?? "", /allowed, never used/);
  assert.match(texts.get("refusals.html") ?? "", /Suggestion, not applied/);
  assert.match(texts.get("refusals.html") ?? "", /<li class="no">/);
  const agent = [...texts.values()].find((text) => text.includes("<h1>The booking agent</h1>")) ?? "";
  assert.match(agent, /mandate tokens end --actor spiffe:\S+ --dry-run/);
  assert.match(agent, /<dt>Living tokens<\/dt><dd>[1-9]/);
  const model = JSON.parse(readFileSync(join(made, "model.json"), "utf8"));
  const given = eventsIn(exported).filter(({ granted }) => granted !== undefined).length;
  const sum = model.agents.reduce(
    (total: number, { used }: { used?: { count: number; refused: number } }) =>
      total + (used === undefined ? 0 : used.count - used.refused),
    0,
  );
  assert.equal(sum, given);
  assert.equal((await runCommandLine(["report", made, "--config", titled])).code, 1);
});

test("REPORT-D-2 names that an attacker chose are text on every page and in every drawing", async () => {
  const loaded = loadSettings(configFile);
  const { settings } = loaded.ok ? loaded.value : assert.fail(loaded.error.join());
  const ends = [
    "</svg>",
    "</title>",
    '"',
    "'",
    "`",
    "]]>",
    "-->",
    "\u202e",
    "\u0000",
    "&lt;",
    "$" + "{x}",
    "\n",
    "%0a",
  ];
  const hearts = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    '" onload="a',
    "<a href=//x>",
  ];
  const nasty = ends.flatMap((end) =>
    hearts.flatMap((heart) => [end + heart, heart + end, `x/${end}${heart}/*`]),
  );
  const [sample] = eventsIn(exported).filter(({ granted }) => granted !== undefined);
  const [refusal] = eventsIn(exported).filter(
    ({ facts, outcome }) => facts !== undefined && outcome === "deny",
  );
  const counted = nothingCounted();
  for (const [index, name] of nasty.entries()) {
    for (const event of [sample, refusal] as unknown as Recorded[]) {
      const { client, subject, granted, requested } = event;
      countEvent(counted, {
        ...event,
        client: { client_id: name, auth_method: name },
        subject: subject && {
          ...subject,
          iss: index % 2 === 0 ? name.replaceAll(" ", "") : subject.iss,
          sub: name,
        },
        requested: { audience: [name], resource: [], scope: name, reason: name },
        ...(granted && { granted: { ...granted, aud: name } }),
        ...(client && { policy: { digest: name, rule_id: name } }),
      } as Recorded);
      assert.ok(requested !== undefined);
    }
  }
  const times = { madeMs: 0, fromMs: 0, toMs: 1 };
  const model = modelOf(settings, await worldOf(settings), gather(String), counted, times);
  let pages = 0;
  for (const page of pagesOf(model)) {
    pages++;
    assertHarmless(page.file, document(page, model, "digest"));
  }
  assert.ok(pages > nasty.length);
});

// --- summary ----------------------------------------------------------------------------------------------------

test("AUDIT-D-19 a summary counts what was refused by day, agent, reason and question", async () => {
  const run = (...words: string[]) =>
    runCommandLine(["audit", "--summary", "--outcome", "deny", "--config", configFile, ...words]);
  const denied = eventsIn(exported).filter(({ outcome }) => outcome === "deny");
  const { code, out } = await run("--format", "ndjson");
  assert.equal(code, 0);
  const rows: JsonObject[] = linesOf(out).map((line) => JSON.parse(line));
  const sum = rows.reduce((total, { count }) => total + Number(count), 0);
  assert.equal(
    sum,
    denied.reduce((total, { count = 1 }) => total + Number(count), 0),
  );
  const of = rows.filter(({ agent, target }) => agent === workload("clerk") && target === API);
  assert.deepEqual(
    of.map(({ question, outcome, reason, subjects, count }) => [question, outcome, reason, subjects, count]),
    [["delegation", "deny", "target_not_allowed", 1, 1]],
  );
  const text = await run();
  assert.match(linesOf(text.out)[0] ?? "", /^\d{4}-\d\d-\d\d \d+ deny \w+ .*last=\d{4}-/);
  const csv = await run("--format", "csv");
  assert.match(csv.out, /^day,count,outcome,reason,agent,question,target,scope,subjects,last\r\n/);
  for (const more of [
    ["--limit", "3"],
    ["--jti", "x"],
  ])
    assert.equal((await run(...more)).code, 2);
});

// --- for security tools -----------------------------------------------------------------------------------------

test("AUDIT-D-20 each event is one of OCSF, with what the class requires, and the stored text", async () => {
  const { code, out } = await runCommandLine(["audit", "--format", "ocsf", "--config", configFile]);
  assert.equal(code, 0);
  const classes = new Map<number, number>();
  for (const line of linesOf(out)) {
    const one = JSON.parse(line);
    const event = JSON.parse(one.raw_data);
    classes.set(one.class_uid, (classes.get(one.class_uid) ?? 0) + 1);
    assert.equal(one.type_uid, 100 * one.class_uid + one.activity_id);
    assert.equal(one.metadata.version, "1.6.0");
    assert.deepEqual([one.metadata.uid, one.time], [event.id, Date.parse(event.time)]);
    assert.equal(one.status_id, event.outcome === "allow" ? 1 : 2);
    if (one.class_uid === 3003) {
      assert.deepEqual(one.privileges, (event.granted ?? event.requested)?.scope?.split(" ") ?? []);
      assert.equal(one.user.uid, event.subject?.sub ?? event.client.workload ?? event.client.client_id);
    }
  }
  assert.deepEqual([...classes.keys()].sort(), [0, 3003]);
});

// --- what is not as it was recorded -----------------------------------------------------------------------------

const linesOf = (text: string): string[] => text.trimEnd().split("\n");
const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

type Spoilt = readonly [what: string, file: string, spoil: (lines: string[]) => string, says: RegExp];
const indexOfDecision = (lines: readonly string[]): number =>
  lines.findIndex((line) => line.includes('"facts":'));
const spoilt: readonly Spoilt[] = [
  [
    "a changed event",
    "events.ndjson",
    (lines) =>
      textOf(
        lines.with(
          indexOfDecision(lines),
          lines[indexOfDecision(lines)]?.replace('"now":1', '"now":2') ?? "",
        ),
      ),
    /record \d+ was changed/,
  ],
  ["a missing event", "events.ndjson", (lines) => textOf(lines.toSpliced(4, 1)), /missing/],
  ["events in another order", "events.ndjson", (lines) => textOf(lines.toReversed()), /reordered/],
  ["a cut line", "events.ndjson", (lines) => textOf(lines).slice(0, -9), /not a record|is cut/],
  ["a part that is gone", "events.ndjson", (lines) => textOf(lines.slice(0, 20)), /missing/],
  [
    "an event that is there twice",
    "events.ndjson",
    (lines) => textOf([...lines, lines[5] ?? ""]),
    /twice|reordered/,
  ],
  ["an archive without the policy", "policies.ndjson", () => "", /lacks the policy|is not in the archive/],
  [
    "an archive that was changed",
    "policies.ndjson",
    (lines) => textOf(lines).replace("booking-abroad", "booking-aboard"),
    /does not have this digest/,
  ],
];
for (const [what, name, spoil, says] of spoilt) {
  test(`REPL-D-5 of a trail with ${what} nothing is decided again, and it is told`, async () => {
    const copy = mkdtempSync(join(folder, "spoilt "));
    cpSync(exported, copy, { recursive: true });
    const text = readFileSync(join(copy, name), "utf8");
    const other = spoil(linesOf(text));
    assert.notEqual(other, text);
    writeFileSync(join(copy, name), other);
    const { code, out, err } = await replay("--export", copy);
    assert.deepEqual([code, out], [2, ""], err);
    assert.match(err, says);
    assert.match(err, /Nothing was decided again\.$/m);
  });
}

/** An export whose events are others, with a chain that fits; it is no longer covered by its checkpoints. */
function rewritten(change: (event: JsonObject) => JsonObject): string {
  const copy = mkdtempSync(join(folder, "rewritten "));
  cpSync(exported, copy, { recursive: true });
  const heads = new Map<unknown, string>();
  const lines = eventsIn(exported).map((event) => {
    const prev = heads.get(event.log) ?? String(event.prev);
    const body = canonicalize({ ...change(event), prev });
    heads.set(event.log, eventHash(body));
    return body;
  });
  writeFileSync(join(copy, "events.ndjson"), textOf(lines));
  return copy;
}

test("REPL-D-5 records of version 1 are counted apart, and a policy of another version is told", async () => {
  const old = rewritten(({ facts: _, ...event }) => ({ ...event, v: 1 }));
  const { code, told } = await asJson("--export", old, "--unverified");
  assert.deepEqual([code, told.same], [0, 0]);
  assert.match(Object.keys(told.apart)[0] ?? "", /^recorded in version 1/);
  const { hash } = await import("node:crypto");
  const [line = ""] = linesOf(readFileSync(join(exported, "policies.ndjson"), "utf8"));
  const { policy } = JSON.parse(line);
  const body = canonicalize({ ...policy, policies: [{ ...policy.policies[0], novel: 1 }] });
  const digest = `sha256:${hash("sha256", body, "hex")}`;
  const novel = rewritten((event) =>
    event.policy === undefined ? event : { ...event, policy: { ...(event.policy as JsonObject), digest } },
  );
  writeFileSync(join(novel, "policies.ndjson"), `{"digest":"${digest}","policy":${body}}\n`);
  const run = await replay("--export", novel, "--unverified");
  assert.equal(run.code, 2);
  assert.match(run.err, /is of another version: rule 1 /);
});

test("REPL-D-4 a decision that was recorded otherwise than the policy decides is told by its members", async () => {
  const forged = rewritten((event) =>
    event.granted === undefined
      ? event
      : { ...event, granted: { ...(event.granted as JsonObject), scope: "all" } },
  );
  const { code, told } = await asJson("--export", forged, "--unverified");
  assert.equal(code, 1);
  assert.deepEqual(Object.keys(told.differing), ["scope"]);
  assert.equal(told.differs[0].was.scope, "all");
});

test("policy replay refuses words that do not fit", async () => {
  const cases: readonly [words: string[], says: RegExp][] = [
    [["--since", "30x"], /--since is neither a time in UTC/],
    [["--format", "csv"], /--format is not one of text, json/],
    [["--partial"], /require --export/],
    [["--export", exported, "--config", "x"], /cannot be combined with --config/],
    [["--export", join(folder, "none")], /is not a whole export: it lacks events\.ndjson/],
  ];
  for (const [words, says] of cases) {
    const { code, err } = await replay(...words);
    assert.equal(code, 2);
    assert.match(err, says);
  }
});
