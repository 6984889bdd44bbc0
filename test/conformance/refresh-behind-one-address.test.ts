/** The users of a company behind one address: what others do there is no limit to their refreshes. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import {
  Browser,
  files,
  forPeople,
  LOOPBACK_REDIRECT,
  PUBLIC,
  request,
  verifierOf,
} from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import type { Service } from "../support/world.ts";

const USERS = 80;
let provider: TestProvider;
let service: Service;
before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  service = await makeService(
    { ...base, policies: base.policies.map((rule) => ({ ...rule, refresh: true })) },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const refresh = (refresh_token: string) =>
  service.token({ grant_type: "refresh_token", refresh_token, client_id: PUBLIC });

async function startOf(user: string): Promise<string> {
  const verifier = verifierOf();
  const asked = request(verifier, { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT });
  const code = await new Browser(service, provider).codeFor(asked, user);
  const form = { grant_type: "authorization_code", code, code_verifier: verifier, client_id: PUBLIC };
  const answer = await service.token({ ...form, redirect_uri: LOOPBACK_REDIRECT });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.refresh_token);
}

test(`MCPC-D-25 ${USERS} users behind one address refresh, also while guesses from there are limited, and none is told to wait`, async () => {
  const tokens = [];
  for (let user = 0; user < USERS; user++) tokens.push(await startOf(`user-${user}`));
  const again = await Promise.all(tokens.map(refresh));
  assert.deepEqual([...new Set(again.map(({ status }) => status))], [200]);
  // Tokens that are none: this limits the address, and an unknown token meets the limit.
  const guess = () => refresh(`mrt_${randomBytes(32).toString("base64url")}`);
  const guesses = [];
  for (let round = 0; round < 100; round++) guesses.push((await guess()).status);
  assert.equal(guesses.at(-1), 429);
  const third = await Promise.all(again.map(({ body }) => refresh(String(body.refresh_token))));
  assert.deepEqual([...new Set(third.map(({ status }) => status))], [200]);
});
