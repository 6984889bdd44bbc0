/** The load of a scene, at all instances in turn, whether or not earlier requests are answered; and all that was answered. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, claimsOf, type Form } from "../../http-client.ts";
import { API, asRefresh, type Site } from "./site.ts";

/** `MANDATE_TRIAL_RATE` lowers it where others keep the machine busy, so that what comes in can be answered. */
export const PER_SECOND = Number(process.env.MANDATE_TRIAL_RATE ?? 110);
const REFRESH_MS = 2_000;
const AGAIN_MS = 500;
const TICK_MS = 5;
/** In flight at once; beyond that the load waits, so that one process can hold all connections. */
const PENDING_MAX = 2_000;
const AT_ONCE = 16;
/** Kinds of requests, in turn; with 10 and three instances, each instance gets all kinds. */
const KINDS = 10;
/** Of the latest assertions one is sent again. */
const RECENT = 40;
const ITSELF: Form = { grant_type: "client_credentials", audience: API };

type Token = { jti: string; token: string; ended: "no" | "asked" | "answered" };
type Answered = { at: number; ms: number; wrote: boolean };

export type Load = ReturnType<typeof startLoad>;

export function startLoad(site: Site, families: readonly string[]) {
  const instances = site.servers.length;
  const tokens: Token[] = [];
  const assertions: Form[] = [];
  const answered: Answered[] = [];
  const counts = { answered: 0, unavailable: 0, unreached: [] as string[], other: [] as string[] };
  const wrong = { again: 0, alive: 0, dead: 0, looks: 0, replays: 0 };
  /** Users by how the refresh went wrong at least once. */
  const users = { told503: new Set<number>(), unreached: new Set<number>(), refused: new Set<number>() };
  let [going, turn, pending] = [true, 0, 0];

  const ask = async (at: number, path: string, form: Form, isPrivate = true): Promise<Answer | undefined> => {
    const answer = await site
      .post(at, path, form, isPrivate)
      .catch(({ code, message }: NodeJS.ErrnoException) => void counts.unreached.push(code ?? message));
    if (answer === undefined) return undefined;
    if (answer.status === 200) {
      counts.answered++;
      answered.push({ at, ms: performance.now(), wrote: path !== "/introspect" });
    } else if (answer.status === 503) counts.unavailable++;
    return answer;
  };
  const note = ({ status, text }: Answer): void => {
    if (status !== 200 && status !== 503) counts.other.push(`${status} ${text.slice(0, 120)}`);
  };
  const keep = (answer: Answer | undefined): Token | undefined => {
    if (answer === undefined) return undefined;
    note(answer);
    if (answer.status !== 200) return undefined;
    const token = String(answer.body.access_token);
    const one: Token = { jti: String(claimsOf(token).jti), token, ended: "no" };
    tokens.push(one);
    return one;
  };
  const replay = async (at: number, form: Form): Promise<void> => {
    const answer = await site.post(at, "/token", form, false).catch(() => undefined);
    wrong.replays++;
    if (answer?.status === 200) wrong.again++;
  };
  const introspect = async (at: number, one: Token): Promise<void> => {
    const before = one.ended;
    const answer = await ask(at, "/introspect", { token: one.token });
    if (answer?.status !== 200) return;
    wrong.looks++;
    const { active } = answer.body;
    if (before === "answered" && active !== false) wrong.alive++;
    if (one.ended === "no" && active !== true) wrong.dead++;
  };
  const revoke = async (at: number, one: Token): Promise<void> => {
    one.ended = "asked";
    const answer = await ask(at, "/revoke", { token: one.token });
    if (answer !== undefined) note(answer);
    if (answer?.status === 200) one.ended = "answered";
  };
  /** Those that their client ends later. */
  const own: Token[] = [];
  const step = async (number: number): Promise<void> => {
    const at = number % instances;
    const kind = number % KINDS;
    if (kind < 3) {
      const form = await site.assertion();
      if (keep(await ask(at, "/token", form, false)) !== undefined) assertions.push(form);
    } else if (kind < 6) {
      const one = keep(await ask(at, "/token", kind === 3 ? ITSELF : await site.exchange()));
      if (one !== undefined) own.push(one);
    } else if (kind === 6) {
      const form = assertions.at(-1 - Math.floor(Math.random() * RECENT));
      if (form !== undefined) await replay(at, form);
    } else if (kind < 9) {
      const one = own.shift();
      if (one !== undefined) await revoke(at, one);
    } else {
      const one = tokens[Math.floor(Math.random() * tokens.length)];
      if (one !== undefined) await introspect(at, one);
    }
  };
  const startMs = performance.now();
  let begun = 0;
  const tick = setInterval(() => {
    const due = ((performance.now() - startMs) * PER_SECOND) / 1_000;
    for (; begun < due; begun++) {
      if (pending >= PENDING_MAX) continue;
      pending++;
      void step(turn++).finally(() => pending--);
    }
  }, TICK_MS);

  /** A user's app: it uses the token that it has until there is an answer, at one instance after another. */
  const refreshing = families.map(async (first, user) => {
    let token = first;
    await sleep(Math.random() * REFRESH_MS);
    for (let tries = user; going; tries++) {
      const answer = await ask(tries % instances, "/token", asRefresh(token), false);
      if (answer?.status === 200) {
        keep(answer);
        token = String(answer.body.refresh_token);
        await sleep(REFRESH_MS);
        continue;
      }
      if (answer === undefined) users.unreached.add(user);
      else if (answer.status === 503) users.told503.add(user);
      else {
        users.refused.add(user);
        note(answer);
        return token;
      }
      await sleep(AGAIN_MS);
    }
    return token;
  });
  return {
    tokens,
    assertions,
    answered,
    counts,
    wrong,
    users,
    replay,
    introspect,
    async stop() {
      clearInterval(tick);
      going = false;
      await Promise.all(refreshing);
      while (pending > 0) await sleep(TICK_MS);
    },
    /** Each of them, a few at a time. */
    async each<T>(list: readonly T[], work: (one: T, index: number) => Promise<void>): Promise<void> {
      const entries = list.entries();
      const run = async (): Promise<void> => {
        for (const [index, one] of entries) await work(one, index);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, run));
    },
  };
}
