/**
 * A deployment for users: sign-in with a choice of providers, consent, a code, a refresh token, a pushed request with details,
 * an agent that asks its user and one that waits, and the account page.
 */
import assert from "node:assert/strict";
import { type Answer, encodeForm } from "../../scripts/http-client.ts";
import { exchange, linkIn } from "./asking-agents.ts";
import { cancel, forDeferral, poll, waitFor } from "./deferral.ts";
import {
  AS_WEB,
  type Asked,
  Browser,
  files,
  LOOPBACK_REDIRECT,
  NOTES,
  PRIVATE,
  PUBLIC,
  parametersOf,
  request,
  verifierOf,
  WEB_REDIRECT,
} from "./people.ts";
import { png } from "./png.ts";
import type { TestProvider } from "./provider.ts";
import { makeWorld, type World } from "./world.ts";

/** A type of `authorization_details`, by which the pushed request is limited. */
const NOTEBOOK = { governs: ["notes.read"], fields: { path: { is: "string", narrows: "prefix" } } };

export async function openUsers(provider: TestProvider): Promise<World> {
  const base = forDeferral(provider);
  const policies = base.policies.map((rule) =>
    rule.allow === "authorization_code" ? { ...rule, refresh: true } : rule,
  );
  const targets = base.targets.map((target) =>
    target.names.includes(NOTES) ? { ...target, details: { notebook: NOTEBOOK } } : target,
  );
  const signIn = { providers: { company: provider.provider({ method: "private_key_jwt" }) } };
  const pages = { logo: { file: "logo.png" } };
  const withLogo = { ...files(provider), "logo.png": png(8, 8) };
  return makeWorld({ ...base, targets, policies, signIn, pages }, { files: withLogo });
}

const LIMITED = { authorization_details: JSON.stringify([{ type: "notebook", path: "/team" }]) };

export async function playUsers(world: World, provider: TestProvider): Promise<void> {
  const browser = new Browser(world, provider);
  const verifier = verifierOf();
  const pushed = await expect(201, send(world, "/par", request(verifier, LIMITED)));
  const review = await browser.review({ client_id: PRIVATE, request_uri: String(pushed.body.request_uri) });
  const { code = "" } = parametersOf(await browser.decide(review, { detail: "0" }));
  const redemption = {
    grant_type: "authorization_code",
    redirect_uri: WEB_REDIRECT,
    code,
    code_verifier: verifier,
  };
  const { body } = await expect(200, send(world, "/token", redemption));
  const refresh = { grant_type: "refresh_token", refresh_token: String(body.refresh_token) };
  await expect(200, send(world, "/token", refresh));

  // A public client names itself, and proves nothing.
  const open = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
  const back = await browser.decide(await browser.review(request(verifier, open)));
  const form = { ...redemption, ...open, code: parametersOf(back).code ?? "" };
  await expect(200, world.token(form));

  const link = linkIn(await expect(400, exchange(world, provider, { user: "alice" })));
  await expect(200, browser.decide(await browser.get(link)));

  const waits = { user: "alice", path: "agents/booking" };
  const waiting = await waitFor(world, provider, waits);
  await expect(400, poll(world, waiting, waits));
  await expect(200, browser.decide(await browser.get(waiting.link)));
  await expect(200, cancel(world, waiting, waits));

  const home = await expect(200, browser.get("/", { accept: "text/html" }));
  await expect(200, browser.get(/<img src="([^"]*)"/.exec(home.text)?.[1] ?? ""));
  const account = await expect(200, browser.get("/account", { "accept-language": "de" }));
  assert.match(account.text, /<html lang="de"/);
  const [, token = "", consent = ""] =
    /name="token" value="([^"]*)"><input type="hidden" name="consent" value="([^"]*)"/.exec(account.text) ??
    [];
  await expect(303, browser.post("/account/withdraw", { token, consent }));
  const [, signOut = ""] =
    /signout">\s*<input type="hidden" name="token" value="([^"]*)"/.exec(account.text) ?? [];
  await expect(303, browser.post("/signout", { token: signOut }));
  await expect(200, browser.get("/signin?provider=none"));
  await expect(200, world.get("/rp/jwks/company"));
  const logout = { logout_token: await provider.logoutToken({ sub: "alice" }) };
  await expect(200, send(world, "/backchannel-logout/company", logout));
}

const send = (world: World, path: string, parameters: Asked): Promise<Answer> =>
  world.get(path, {
    method: "POST",
    headers: { ...AS_WEB, "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm(parameters),
  });

async function expect(status: number, asked: Promise<Answer>): Promise<Answer> {
  const answer = await asked;
  assert.equal(answer.status, status, answer.text);
  return answer;
}
