/** Agents that wait for their users: they send `completion_mode=deferred`, poll with the code, and cancel it. */
import assert from "node:assert/strict";
import { type Answer, encodeForm, type Form, postForm } from "../../scripts/http-client.ts";
import { DEFERRAL_CODE, DEFERRED, DRAFT } from "../../src/spec/deferred-token-response.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { type Exchanging, exchange, forAskingAgents } from "./asking-agents.ts";
import { Browser } from "./people.ts";
import type { TestProvider } from "./provider.ts";
import type { Service } from "./world.ts";

/** A server at which agents may wait. */
export const forDeferral = (provider: TestProvider, extra: Record<string, unknown> = {}) =>
  forAskingAgents(provider, { drafts: [SPIFFE, DRAFT], ...extra });

export type Waiting = { code: string; link: string; answer: Answer };

/** An agent asks and may wait; the answer is a code with a link. */
export async function waitFor(
  service: Service,
  provider: TestProvider,
  asked: Exchanging = {},
): Promise<Waiting> {
  const answer = await exchange(service, provider, {
    ...asked,
    form: { completion_mode: "deferred", ...asked.form },
  });
  assert.equal(answer.status, 400, answer.text);
  assert.equal(answer.body.error, "interaction_required", answer.text);
  return { code: String(answer.body.deferral_code), link: String(answer.body.interaction_uri), answer };
}

export type Polling = {
  path?: string;
  form?: Form;
  headers?: Record<string, string>;
  port?: number;
};

export async function poll(
  service: Service,
  { code }: Pick<Waiting, "code">,
  { path = "agents/planner", form = {}, headers, port }: Polling = {},
): Promise<Answer> {
  const client = service.as(await service.svid(path));
  const asked = { grant_type: DEFERRED, deferral_code: code, ...client, ...form };
  if (port === undefined) return service.token(asked, headers);
  // Connections that are kept are those to the first instance.
  const connect = { host: "127.0.0.1", port };
  return postForm(`${service.issuer}/token`, asked, { ca: service.ca, connect, ...(headers && { headers }) });
}

/** The outcome of an answer in a word: "token", or the code of the error. */
export const outcome = ({ status, body }: Answer): string => (status === 200 ? "token" : String(body.error));

export async function cancel(
  service: Service,
  { code }: Pick<Waiting, "code">,
  { path = "agents/planner", headers = {} }: Polling = {},
): Promise<Answer> {
  const client = service.as(await service.svid(path));
  const body = encodeForm({ token: code, token_type_hint: DEFERRAL_CODE, ...client });
  return service.get("/revoke", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body,
  });
}

/** The page behind a link, for a user who signs in. */
export async function pageOf(service: Service, provider: TestProvider, link: string, user = "alice") {
  const browser = new Browser(service, provider);
  const answer = await browser.get(link);
  return { browser, page: answer.status === 303 ? await browser.signIn(answer, user) : answer };
}

/** The user decides at the link. */
export async function answerLink(
  service: Service,
  provider: TestProvider,
  link: string,
  decision: "allow" | "refuse",
  user = "alice",
): Promise<Answer> {
  const { browser, page } = await pageOf(service, provider, link, user);
  return browser.decide(page, { decision });
}
