/** What clients are told of the end of their refresh tokens, where the draft for it is acknowledged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DRAFT as EXPIRATION } from "../../../src/spec/refresh-token-expiration.ts";
import { DRAFT as SPIFFE } from "../../../src/spec/spiffe/client-auth.ts";
import { files, forPeople, NOTES, PRIVATE, PUBLIC, SCOPES } from "../../support/people.ts";
import { startProvider } from "../../support/provider.ts";
import {
  ALICE,
  forRefresh,
  type Outcome,
  openRefresh,
  type RefreshFlow,
  tokenOf,
} from "../../support/refresh.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";

const DAY = 24 * 3600;
const IDLE = 7 * DAY;
const WHOLE = 30 * DAY;
const told = (refresh: object = {}) =>
  forRefresh(() => ({ drafts: [SPIFFE, EXPIRATION], authorize: { refresh } }));

/** The idle time and all of it, as an answer tells them. */
function lasts(answer: Outcome): readonly (number | undefined)[] {
  assert.ok(answer.error === undefined, JSON.stringify(answer));
  return [answer.refresh_token_timeout, answer.authorization_expires_in];
}
/** Uses the last refresh token again after each of these times. */
async function usedAfter(flow: RefreshFlow, token: string, seconds: readonly number[]): Promise<Outcome[]> {
  const answers: Outcome[] = [];
  let last = token;
  for (const pause of seconds) {
    flow.pass(pause);
    const answer = await flow.refresh(last);
    answers.push(answer);
    last = tokenOf(answer);
  }
  return answers;
}

test("RTE-6.1-2, RTE-D-1, RTE-D-2, RTE-D-4 the answers of a code and of each refresh tell how long the refresh token lasts, unused and at the latest", async (t) => {
  const flow = await openRefresh(t, told());
  const { answer } = await flow.give();
  assert.deepEqual(lasts(answer), [IDLE, WHOLE]);
  const answers = await usedAfter(flow, tokenOf(answer), [DAY, 6 * DAY]);
  assert.deepEqual(answers.map(lasts), [
    [IDLE, WHOLE - DAY],
    [IDLE, WHOLE - 7 * DAY],
  ]);
});

test("RTE-6.1-1, RTE-D-2 the idle time is never told as longer than all of it", async (t) => {
  const flow = await openRefresh(t, told());
  const days = [6, 6, 6, 6].map((count) => count * DAY);
  const answers = await usedAfter(flow, await flow.start(), days);
  assert.deepEqual(answers.map(lasts).at(-1), [6 * DAY, 6 * DAY]);
});

test("RTE-6.1-4, RTE-D-2 what is given for less than a day has no idle time, and none is told", async (t) => {
  const flow = await openRefresh(t, told());
  const { answer } = await flow.give({ offline: false });
  assert.deepEqual(lasts(answer), [undefined, DAY / 2]);
  assert.ok(!("refresh_token_timeout" in answer));
});

test("RTE-6.1.1-2, RTE-D-1 the end of the consent is told, where it comes before that of the family", async (t) => {
  const flow = await openRefresh(t, told());
  const expiresAtSeconds = flow.nowSeconds + 5 * DAY;
  const given = { origin: ALICE, actor: PUBLIC, targets: [NOTES], scopes: SCOPES, expiresAtSeconds };
  const { answer } = await flow.give({ consent: await flow.consent(given) });
  assert.deepEqual(lasts(answer), [5 * DAY, 5 * DAY]);
});

test("RTE-D-3 a shorter setting counts at once, as it does for the refresh token itself", async (t) => {
  const flow = await openRefresh(t, told());
  const token = await flow.start();
  flow.reload(told({ days: 4, idleDays: 2 }));
  flow.pass(DAY + 0.9);
  assert.deepEqual(lasts(await flow.refresh(token)), [2 * DAY, 3 * DAY]);
});

test("RTE-6.1-3, RTE-D-4 a client that keeps its refresh token is told of the moved end without a new one", async (t) => {
  const flow = await openRefresh(t, told());
  const token = await flow.start({ client: PRIVATE });
  flow.pass(DAY);
  const answer = await flow.refresh(token, {}, PRIVATE);
  assert.deepEqual(lasts(answer), [IDLE, WHOLE - DAY]);
  assert.ok(answer.error === undefined && answer.refresh_token === undefined);
});

test("RTE-D-5 the answer to a retry tells the times of the refresh token that it gives again", async (t) => {
  const flow = await openRefresh(t, told());
  const first = await flow.start();
  flow.pass(DAY);
  const second = await flow.refresh(first);
  flow.pass(5);
  const again = await flow.refresh(first);
  assert.equal(tokenOf(again), tokenOf(second));
  assert.deepEqual(lasts(again), [IDLE, WHOLE - DAY - 5]);
});

test("CHG-D-8 nothing is told where the draft is not acknowledged", async (t) => {
  const flow = await openRefresh(t);
  const { answer } = await flow.give();
  const next = await flow.refresh(tokenOf(answer));
  for (const one of [answer, next]) {
    assert.deepEqual(lasts(one), [undefined, undefined]);
    assert.ok(!("refresh_token_timeout" in one) && !("authorization_expires_in" in one));
  }
});

for (const [name, drafts, refresh, types] of [
  ["that tells ends", [SPIFFE, EXPIRATION], true, ["authorization", "token_timeout"]],
  ["that tells none", [SPIFFE], true, undefined],
  ["whose rules give no refresh token", [SPIFFE, EXPIRATION], false, undefined],
] as const) {
  const listed = types === undefined ? "no types of ends" : "both types of ends";
  test(`RTE-8-1, RTE-8-2, RTE-D-9 the metadata of a server ${name} list ${listed}`, async (t) => {
    const provider = await startProvider();
    t.after(() => stop(provider));
    const { policies, ...config } = forPeople(provider, { drafts });
    const rules = policies.map((rule) => ({ ...rule, refresh }));
    const service = await makeService({ ...config, policies: rules }, { files: files(provider) });
    t.after(() => stop(service));
    const { body } = await service.get("/.well-known/oauth-authorization-server");
    assert.deepEqual(body.refresh_token_expiration_types_supported, types);
  });
}
