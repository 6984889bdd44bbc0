/** What users gave by the browser for their jobs: codes, a family of refresh tokens, and answers that agents wait for. */
import assert from "node:assert/strict";
import { DEFERRED } from "../../../src/spec/deferred-token-response.ts";
import {
  Browser,
  NOTES,
  parametersOf,
  request,
  verifierOf,
  WEB_REDIRECT,
} from "../../../test/support/people.ts";
import { ISSUER } from "../../../test/support/world.ts";
import type { Call, Line } from "../../bench/client.ts";
import { ASKED, type Site } from "./site.ts";
import { makeJob } from "./work.ts";

/** Each call gives a token as long as the jobs live: once, or again and again. */
export type Given = { jobs: readonly string[]; once: readonly Way[]; again: Way };
export type Way = { way: "code" | "deferred" | "refresh" | "chosen" | "exchange" | "grant"; call: Call };

/** Codes have a minute to be used. */
const CODES = 4;
/** As many as may wait for one question. */
const WAITING = 4;

/** A user approves jobs of the app, and answers what the agent waits for in a job of its own. */
export async function giveAll(site: Site, line: Line, user: string): Promise<Given> {
  const [at = assert.fail()] = site.instances;
  const service = { issuer: ISSUER, get: (path: string, sent?: object) => site.ask(at, path, sent) };
  const browser = new Browser(service, site.provider);
  const approve = async (): Promise<Call> => {
    const verifier = verifierOf();
    const mandate_job_request = JSON.stringify({ title: `Notes of ${user}`, targets: [NOTES] });
    const page = await browser.review(request(verifier, { mandate_job_request, scope: "notes.read" }), user);
    const { code = assert.fail() } = parametersOf(await browser.decide(page));
    const form = { code, code_verifier: verifier, redirect_uri: WEB_REDIRECT };
    return site.as("web", "/token", { grant_type: "authorization_code", ...form });
  };
  const { body } = await line.send(await approve());
  const { refresh_token = assert.fail(body) } = JSON.parse(body);
  const again = site.as("web", "/token", { grant_type: "refresh_token", refresh_token });
  const once: Way[] = [];
  for (const call of await wait(site, line, browser, user)) once.push({ way: "deferred", call });
  for (let one = 0; one < CODES; one++) once.push({ way: "code", call: await approve() });
  const query = new URLSearchParams({ iss: site.provider.issuer, sub: user });
  const { jobs } = await site.manage(at, `/jobs?${query}`);
  const ids = (jobs as { id: string }[]).map(({ id }) => id);
  assert.equal(ids.length, CODES + 2);
  return { jobs: ids, once, again: { way: "refresh", call: again } };
}

/** The polls of an agent whose question the user has answered. */
async function wait(site: Site, line: Line, browser: Browser, user: string): Promise<readonly Call[]> {
  const job = await makeJob(site, user);
  const form = { mandate_job: job, completion_mode: "deferred" };
  const asked = site.exchange("planner", { users: await site.userToken(user) }, ASKED, form);
  const polls: Call[] = [];
  let link = "";
  for (let one = 0; one < WAITING; one++) {
    const { body } = await line.send(asked);
    const { deferral_code = assert.fail(body), interaction_uri } = JSON.parse(body);
    polls.push(site.byAgent("planner", { grant_type: DEFERRED, deferral_code }));
    link = String(interaction_uri);
  }
  const page = await browser.get(link);
  const shown = page.status === 303 ? await browser.signIn(page, user) : page;
  assert.equal((await browser.decide(shown)).status, 200);
  return polls;
}
