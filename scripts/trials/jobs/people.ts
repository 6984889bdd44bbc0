/** What a user gave by the browser for a job: a code, and a family of refresh tokens; and a question that waits. */
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
import type { Site } from "./site.ts";
import { ASKED } from "./site.ts";
import type { Given, Work } from "./work.ts";
import { givenBy } from "./work.ts";

export type OfUser = { job: string; call: Call; given?: Given };

/** The user approves a job of the app; its code is redeemed, if the call is to be a refresh. */
export async function approve(site: Site, line: Line, user: string, refreshes: boolean): Promise<OfUser> {
  const [at = assert.fail()] = site.instances;
  const service = { issuer: ISSUER, get: (path: string, sent?: object) => site.ask(at, path, sent) };
  const browser = new Browser(service, site.provider);
  const verifier = verifierOf();
  const job_request = JSON.stringify({ title: `Notes of ${user}`, targets: [NOTES] });
  const page = await browser.review(request(verifier, { job_request, scope: "notes.read" }), user);
  const { code = assert.fail() } = parametersOf(await browser.decide(page));
  const form = { code, code_verifier: verifier, redirect_uri: WEB_REDIRECT };
  const call = site.as("web", "/token", { grant_type: "authorization_code", ...form });
  if (!refreshes) {
    const query = new URLSearchParams({ iss: site.provider.issuer, sub: user });
    const { jobs } = await site.manage(at, `/jobs?${query}`);
    return { job: (jobs as { id: string }[])[0]?.id ?? assert.fail(), call };
  }
  const { status, body } = await line.send(call);
  const answer = JSON.parse(body);
  const again = { grant_type: "refresh_token", refresh_token: String(answer.refresh_token) };
  const given = givenBy({ status, body: answer });
  return { job: String(answer.job_id), call: site.as("web", "/token", again), given };
}

/** A question of the job to its user, which the agent polls. */
export async function wait(site: Site, line: Line, { job, user }: Work): Promise<Call> {
  const asked = site.exchange("planner", user, ASKED, { job, completion_mode: "deferred" });
  const { body } = await line.send(asked);
  const { deferral_code } = JSON.parse(body);
  return site.byAgent("planner", {
    grant_type: DEFERRED,
    deferral_code: String(deferral_code ?? assert.fail(body)),
  });
}
