/**
 * The provider disables a user and tells one instance: for how long any instance still gives this user a token, by each of
 * the ways that lead to one, and what becomes of the tokens that the user has.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Asked,
  Browser,
  parametersOf,
  request,
  verifierOf,
  WEB_REDIRECT,
} from "../../../test/support/people.ts";
import { ISSUER } from "../../../test/support/world.ts";
import type { Answer, Form } from "../../http-client.ts";
import { describeTimes, timesOf } from "./figures.ts";
import type { Instance, Site } from "./site.ts";

const ISSUED_MS = 2_000;
/** Each way is tried for this long after the signal, and for a while before it. */
const TRIED_MS = 2_500;
const BEFORE_MS = 300;
const PAUSE_MS = 25;
/** Repetitions at the same time, each with a user of its own. */
const AT_ONCE = 6;
const LIVING = 1_000;
const IN_PARALLEL = 24;

export async function disableUsers(site: Site, rounds: number): Promise<string> {
  const lastMs: number[] = [];
  let [before, refused] = [0, 0];
  const rest = Array.from({ length: rounds }, (_, round) => round);
  const worker = async (): Promise<void> => {
    for (let round = rest.pop(); round !== undefined; round = rest.pop()) {
      const outcome = await disableOne(site, round);
      lastMs.push(outcome.lastMs);
      before += outcome.before;
      refused += outcome.refused;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const times = timesOf(lastMs);
  const line = `disabled by a signal: last token after ${describeTimes(times)} users; ${before} tokens before it, ${refused} refusals after it, by exchange, refresh, code and sign-in at every instance`;
  assert.ok(times.p99 <= ISSUED_MS, line);
  return line;
}

type Outcome = { lastMs: number; before: number; refused: number };

async function disableOne(site: Site, round: number): Promise<Outcome> {
  const sub = `leaver-${round}`;
  const one = site.instances[round % site.instances.length] ?? assert.fail();
  const userToken = await site.userToken(sub);
  const app = await openApp(site, one, sub);
  const codes = await Promise.all(site.instances.map(() => app.code()));
  const refreshToken = await app.redeem(one, await app.code());
  let [signalMs, lastMs, before, refused] = [Number.POSITIVE_INFINITY, 0, 0, 0];
  const note = (sentMs: number, { status, text }: Answer): void => {
    assert.ok(status === 200 || status === 400, `${status} ${text}`);
    if (sentMs < signalMs && status === 200) before++;
    if (status === 400) refused++;
    else if (sentMs >= signalMs) lastMs = Math.max(lastMs, sentMs - signalMs);
  };
  let going = true;
  const tries = async (ask: () => Promise<Answer>): Promise<void> => {
    while (going) {
      const sentMs = performance.now();
      note(sentMs, await ask());
      await sleep(PAUSE_MS);
    }
  };
  const all = site.instances.flatMap((at) => [
    tries(() => site.exchange(at, userToken)),
    tries(() => app.refresh(at, refreshToken)),
  ]);
  await sleep(BEFORE_MS);
  signalMs = performance.now();
  await site.disable(one, sub);
  await sleep(TRIED_MS);
  for (const [index, at] of site.instances.entries()) {
    const sentMs = performance.now();
    note(sentMs, await app.redeemed(at, codes[index] ?? ""));
  }
  const isAdmitted = async (): Promise<boolean> =>
    (await openApp(site, one, sub).then((again) => again.code())) !== "";
  assert.equal(await isAdmitted().catch(() => false), false, `${sub} gets a code after the signal`);
  going = false;
  await Promise.all(all);
  assert.ok(before > 0 && refused > 0);
  return { lastMs, before, refused };
}

/** The user's app, with a browser in which the user is signed in. */
async function openApp(site: Site, at: Instance, sub: string) {
  const browser = new Browser(
    { issuer: ISSUER, get: (path, sent) => site.ask(at, path, sent) },
    site.provider,
  );
  const verifier = verifierOf();
  const asked: Asked = request(verifier);
  const redeemed = (where: Instance, code: string): Promise<Answer> => {
    const form: Form = {
      grant_type: "authorization_code",
      code,
      code_verifier: verifier,
      redirect_uri: WEB_REDIRECT,
    };
    return site.post(where, "/token", form, "app");
  };
  const first = await browser.decide(await browser.review(asked, sub));
  let next: string | undefined = parametersOf(first).code;
  return {
    redeemed,
    async code(): Promise<string> {
      const [ready] = [next];
      next = undefined;
      if (ready !== undefined) return ready;
      const page = await browser.follow(await browser.authorize(asked));
      const { code = "" } = parametersOf(page.status === 200 ? await browser.decide(page) : page);
      assert.notEqual(code, "", `no code: ${page.status}`);
      return code;
    },
    async redeem(where: Instance, code: string): Promise<string> {
      const { status, body, text } = await redeemed(where, code);
      assert.equal(status, 200, text);
      return String(body.refresh_token);
    },
    refresh: (where: Instance, token: string): Promise<Answer> =>
      site.post(where, "/token", { grant_type: "refresh_token", refresh_token: token }, "app"),
  };
}

/** Of the living tokens of two users, those of the one who is disabled. */
export async function endLiving(site: Site): Promise<string> {
  const issue = async (sub: string): Promise<string[]> => {
    const subject = await site.userToken(sub);
    return spread(LIVING, async (turn) => {
      const { status, body, text } = await site.exchange(
        site.instances[turn % site.instances.length] ?? assert.fail(),
        subject,
      );
      assert.equal(status, 200, text);
      return String(body.access_token);
    });
  };
  const [gone, stays] = [await issue("owner"), await issue("neighbour")];
  const [one = assert.fail()] = site.instances;
  const startMs = performance.now();
  await site.disable(one, "owner");
  const takenMs = Math.round(performance.now() - startMs);
  const active = async (tokens: readonly string[]): Promise<number[]> => {
    const counts = await Promise.all(
      site.instances.map((at) => spread(tokens.length, (turn) => site.isActive(at, tokens[turn] ?? ""))),
    );
    return counts.map((each) => each.filter(Boolean).length);
  };
  const [ofGone, ofStays] = [await active(gone), await active(stays)];
  const line = `${LIVING} living tokens of a user, signal taken in ${takenMs} ms: active at each instance ${ofGone.join(", ")}; of another user ${ofStays.join(", ")} of ${LIVING}`;
  assert.ok(ofGone.every((count) => count === 0) && ofStays.every((count) => count === LIVING), line);
  return line;
}

/** Does this so many times, some of them at once. */
export async function spread<T>(count: number, work: (turn: number) => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const turn = next++;
      done[turn] = await work(turn);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, IN_PARALLEL) }, worker));
  return done;
}
