import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { choiceOf, givenOf } from "../../../src/people/policy/permissions.ts";
import { compilePolicy, Rule, Target } from "../../../src/policy/rules.ts";
import { comparePermissions } from "../../support/permissions.ts";

/** Few enough for the suite, and many times what each of the faults below needs to be found. */
const ROUNDS = 100;
const SEED = 44;

test(`PAGE-D-35, PAGE-D-11, JOB-D-6 what is shown and ticked is what is recorded and what exchanges then give, in both directions, for ${ROUNDS} random requests of the seed ${SEED}`, () => {
  const seen = comparePermissions(ROUNDS, SEED);
  // Each kind of request was among them.
  for (const [kind, count] of Object.entries(seen)) assert.ok(count > ROUNDS / 33, `${kind}: ${count}`);
});

test("PAGE-D-1, PAGE-D-35 what a client could get by codes alone is no box beside what it asks for, since no consent brings a code", () => {
  const names = ["https://notes.example", "https://trips.example"] as const;
  const rule = {
    ...{ allow: "authorization_code", clients: ["web-app"], subjects: { issuers: ["https://idp.example"] } },
    ...{ id: "codes", targets: [...names], scopes: ["read", "write"] },
  };
  const compiled = compilePolicy(
    [v.parse(Rule, rule)],
    names.map((name) => v.parse(Target, { names: [name], scopes: ["read", "write"] })),
    "https://as.example",
    "digest",
  );
  assert.ok(compiled.ok, JSON.stringify(compiled));
  const target = compiled.value.targets.get(names[0]) ?? assert.fail();
  const bounds = { notAfterSeconds: 1, targets: names, scopes: ["read", "write"] };
  const { at } = choiceOf(
    compiled.value,
    { target, name: names[0], scope: ["read"], bounds },
    { clientId: "web-app" },
    { iss: "https://idp.example", sub: "alice" },
  );
  assert.deepEqual(
    at.map(({ name, permissions }) => [name, permissions.map(({ box }) => box)]),
    [[names[0], ["read"]]],
  );
});

/** What a page and its click did, or could do. */
const FAULTS: Readonly<Record<string, typeof givenOf>> = {
  "an agent gets what no rule lets it have": ({ at, agents, ...choice }, ...rest) => {
    const may = new Set(at.flatMap(({ permissions }) => permissions.map(({ box }) => box)));
    return givenOf({ ...choice, at, agents: agents.map((agent) => ({ ...agent, may })) }, ...rest);
  },
  "one consent has all targets of an agent": (...asked) => {
    const given = givenOf(...asked);
    if (!given.ok) return given;
    const consents = given.value.consents.map((one) => {
      const own = given.value.consents.filter(({ actor }) => actor === one.actor);
      return { ...one, targets: [...new Set(own.flatMap(({ targets }) => targets))] };
    });
    return { ...given, value: { ...given.value, consents } };
  },
  "a job has every scope that is shown": (choice, ticks, bounds) =>
    givenOf(
      choice,
      bounds === undefined
        ? ticks
        : {
            ...ticks,
            scopes: choice.at.flatMap(({ permissions }) => permissions.map(({ box }) => box)),
          },
      bounds,
    ),
  "every agent of a job is ticked": (choice, ticks, bounds) =>
    givenOf(choice, { ...ticks, agents: choice.agents.map(({ id }) => id) }, bounds),
  "a limit without a tick counts": (choice, ticks, bounds) =>
    givenOf(
      choice,
      { ...ticks, details: choice.at.flatMap(({ limits }) => limits.map(({ box }) => box)) },
      bounds,
    ),
  "a limit is lost": (...asked) => {
    const given = givenOf(...asked);
    if (!given.ok) return given;
    const consents = given.value.consents.map(({ details: _, ...one }) => one);
    return { ...given, value: { ...given.value, consents } };
  },
  "the last permission that was ticked is not recorded": (...asked) => {
    const given = givenOf(...asked);
    if (!given.ok) return given;
    return { ...given, value: { ...given.value, consents: given.value.consents.slice(0, -1) } };
  },
};

for (const [fault, give] of Object.entries(FAULTS)) {
  test(`PAGE-D-35 the comparison finds it if ${fault}`, () => {
    assert.throws(() => comparePermissions(ROUNDS, SEED, give), assert.AssertionError);
  });
}
