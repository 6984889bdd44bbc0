/** `mandate tokens`: on the store of a running service. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { basic } from "../../scripts/http-client.ts";
import { parseCommand, spawnCommandLine } from "../support/host.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  type Service,
  workload,
} from "../support/world.ts";

const SECRET = "admin-tokens-admin-tokens-12345678";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read"];

let service: Service;
before(async () => {
  service = await makeService(
    {
      clients: {
        desk: { method: "client_secret_basic", secrets: [SECRET] },
        gate: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [
        { names: ["planner"], owners: [planner], introspectors: ["gate"], scopes },
        { names: ["booking"], owners: [booking], introspectors: ["gate"], scopes },
      ],
      policies: [
        { id: "desk", allow: "client_credentials", clients: ["desk"], targets: ["planner"], scopes },
        {
          id: "planner",
          allow: "delegation",
          actors: [planner],
          subjects: { issuers: [ISSUER] },
          subjectToken: { audiences: ["self"] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
          targets: ["booking"],
          scopes,
        },
      ],
    },
    { inFile: true },
  );
});
after(() => stop(service));

const admin = (...words: string[]): Promise<HostRun> =>
  runCommandLine(["--config", service.configFile, ...words]);

async function own(): Promise<string> {
  const form = { grant_type: "client_credentials", audience: "planner" };
  const answer = await service.token(form, { authorization: basic("desk", SECRET) });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** A token of the client desk, and that of planner which comes from it. */
async function twoHops(): Promise<[string, string]> {
  const first = await own();
  const svid = await service.svid("agents/planner");
  const answer = await service.token({
    grant_type: EXCHANGE,
    subject_token: first,
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience: "booking",
    ...service.as(svid),
  });
  assert.equal(answer.status, 200, answer.text);
  return [first, String(answer.body.access_token)];
}

async function isActive(token: string): Promise<boolean> {
  const { body } = await service.get("/introspect", {
    method: "POST",
    headers: {
      authorization: basic("gate", SECRET),
      "content-type": "application/x-www-form-urlencoded",
    },
    body: `token=${token}`,
  });
  return body.active === true;
}

const jtiOf = (token: string): string => String(claimsOf(token).jti);

test("RFC7009-3-1 an operator sees what an ending would end, ends it, and sees what became of the token", async () => {
  const [first, second] = await twoHops();
  const shown = await admin("tokens", "show", jtiOf(second));
  assert.deepEqual([shown.code, shown.err], [0, ""]);
  const [ancestor = "", itself = "", state] = shown.out.split("\n");
  const fields = `client=desk subject=desk issuer=${ISSUER} target=planner`;
  assert.ok(ancestor.startsWith(`${jtiOf(first)} ${fields}`), ancestor);
  assert.ok(itself.includes(`chain=${planner} target=booking scope=trips.read rule=planner`), itself);
  assert.equal(state, "It is valid.");

  const preview = await admin("tokens", "end", "--jti", jtiOf(first), "--dry-run");
  assert.deepEqual([preview.code, preview.err], [0, ""]);
  const listed = preview.out.split("\n");
  const jtis = listed.slice(0, 2).map((line) => String(line.split(" ")[0]));
  assert.deepEqual(jtis.toSorted(), [first, second].map(jtiOf).toSorted());
  assert.equal(
    listed[2],
    `Would end the token ${jtiOf(first)} and its descendants: 2 tokens. Nothing was ended.`,
  );
  const asJson = await admin("tokens", "end", "--jti", jtiOf(first), "--dry-run", "--json");
  const records = asJson.out.trimEnd().split("\n");
  assert.deepEqual(
    records.map((line) => JSON.parse(line).jti).toSorted(),
    [first, second].map(jtiOf).toSorted(),
  );
  assert.equal(await isActive(second), true);
  const standing = JSON.parse((await admin("tokens", "show", jtiOf(second), "--json")).out);
  assert.deepEqual([standing.tokens.length, standing.stands], [2, true]);

  const ended = await spawnCommandLine([
    ...["--config", service.configFile],
    ...["tokens", "end", "--jti", jtiOf(first)],
  ]);
  assert.deepEqual([ended.code, ended.err], [0, ""]);
  assert.match(
    ended.out,
    /^Ended the token \S+ and its descendants: 2 tokens that were still valid\.\nTo keep a party out, change the configuration, or add --disable for a subject\.\nResource servers .* at the latest 20\S+Z\.\n$/,
  );
  assert.deepEqual([await isActive(first), await isActive(second)], [false, false]);
  const gone = JSON.parse((await admin("tokens", "show", jtiOf(second), "--json")).out);
  assert.deepEqual([gone.stands, typeof gone.ended.event], [false, "string"]);
  const after = await admin("tokens", "show", jtiOf(second));
  assert.match(after.out, /\nIt was ended at 20\S+ by event \S+\.\n$/);
  const trail = await admin("audit", "--log", "admin");
  for (const part of ["tokens show", "tokens end --dry-run", "token.revoked allow by_operator"]) {
    assert.ok(trail.out.includes(part), part);
  }
  assert.ok(trail.out.includes(` ends=(the token ${jtiOf(first)} and its descendants) `), trail.out);
});

test("RFC7009-3-1 everything that was issued before now ends by one command", async () => {
  const [first, second] = await twoHops();
  const none = await admin("tokens", "end", "--everything", "--up-to", "2020-01-01T00:00:00Z");
  assert.match(
    none.out,
    /^Ended every token: 0 tokens that were still valid, and every token that is issued up to 2020-01-01T00:00:00\.000Z\.\n/,
  );
  assert.equal(await isActive(second), true);
  const all = await admin("tokens", "end", "--everything");
  assert.match(
    all.out,
    /^Ended every token: \d+ tokens that were still valid, and every token that is issued up to 20/,
  );
  assert.deepEqual([await isActive(first), await isActive(second)], [false, false]);
  const gone = JSON.parse((await admin("tokens", "show", jtiOf(second), "--json")).out);
  assert.deepEqual([gone.stands, typeof gone.ended.event], [false, "string"]);
});

test("POLICY-D-20 a subject is disabled and enabled again by command", async () => {
  const subject = ["--issuer", ISSUER, "--subject", "kiosk"];
  const preview = await admin("tokens", "end", ...subject, "--disable", "--dry-run");
  assert.match(preview.out, /, and keep the subject out until it is enabled again\. Nothing was ended\.\n$/);
  const disabled = await admin("tokens", "end", ...subject, "--disable");
  assert.match(
    disabled.out,
    /^Ended every token about the subject kiosk of .*: 0 tokens that were still valid\.\nRefresh tokens of 0 clicks and 0 sessions of the user ended with it\.\n/,
  );
  assert.match(disabled.out, /kept out until it is enabled again \(mandate tokens enable\)/);
  const enabled = await admin("tokens", "enable", ...subject);
  assert.match(enabled.out, /^Enabled kiosk of /);
  const again = await admin("tokens", "enable", ...subject);
  assert.deepEqual([again.code, again.out], [1, ""]);
  assert.match(again.err, /is not disabled by command, API or its issuer/);
  const trail = await admin("audit", "--log", "admin");
  for (const part of ["subject.disabled allow by_operator", "subject.enabled allow by_operator"])
    assert.ok(trail.out.includes(part), part);
});

test("an ending of an issuer that nothing is known of says so; one of a known issuer says nothing of it", async () => {
  const ended = (...issuer: string[]) => admin("tokens", "end", "--issuer", ...issuer);
  const note = /^Note: \S+ is neither this server nor in trustedIssuers\./;
  for (const rest of [["--subject", "bob", "--disable"], []])
    assert.match((await ended(`${IDP}/`, ...rest)).err, note);
  assert.doesNotMatch((await ended(IDP, "--subject", "bob")).err, /Note:/);
});

test("an unknown token is not shown", async () => {
  const run = await admin("tokens", "show", "unknown");
  assert.deepEqual([run.code, run.out], [1, ""]);
  assert.match(run.err, /^There is no record of a token unknown/);
});

const WRONG: [words: string[], problem: RegExp][] = [
  [[], /^give exactly one option that selects tokens/],
  [["--jti", "a", "--client", "b"], /^give exactly one option that selects tokens/],
  [["--everything", "--client", "b"], /^give exactly one option that selects tokens/],
  [["--subject", "alice"], /--subject requires --issuer/],
  [["--actor", "planner"], /actor: is neither the SPIFFE ID of a workload nor/],
  [["--trust-domain", "spiffe://td.example"], /trustDomain: is not the name of a trust domain/],
  [["--everything", "--up-to", "yesterday"], /--up-to requires --everything or --subject, and a time/],
  [
    ["--client", "a", "--up-to", "2020-01-01T00:00:00Z"],
    /--up-to requires --everything or --subject, and a time/,
  ],
  [["--client", "a", "--disable"], /--disable requires --issuer and --subject/],
  [["--client", ""], /--client is empty/],
  [["--scope", "a"], /Unknown option '--scope'/],
];
for (const [words, problem] of WRONG) {
  test(`"tokens end ${words.join(" ")}" is refused before the store is opened`, async () => {
    const command = await parseCommand(["tokens", "end", ...words]);
    assert.ok(!command.ok);
    assert.match(command.error, problem);
  });
}
