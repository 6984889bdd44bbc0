/**
 * Google's authentication library for Node, unmodified, with a credential file of the page for clouds: it exchanges the token
 * of a pod at the real server, over TLS.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { type CloudWorld, makeCloudWorld } from "../support/clouds.ts";
import { stop } from "../support/stop.ts";
import { claimsOf } from "../support/world.ts";

/** Two clients, each as a program that starts: the tokens, or what the library says of the failure. */
const PROGRAM = `
import { readFileSync } from "node:fs";
import { ExternalAccountClient } from "google-auth-library";
const told = [];
for (let index = 0; index < 2; index++) {
  const client = ExternalAccountClient.fromJSON(JSON.parse(readFileSync(process.argv[1], "utf8")));
  client.scopes = ["read"];
  told.push(await client.getAccessToken().then(({ token }) => ({ token }), ({ message }) => ({ message })));
}
console.log(JSON.stringify(told));
`;

let world: CloudWorld;
before(async () => {
  world = await makeCloudWorld();
});
after(() => stop(world));

async function run(subject: string): Promise<{ token?: string; message?: string }[]> {
  const words = ["--input-type=module", "--eval", PROGRAM, "--", world.credentials(subject)];
  const child = spawn(process.execPath, words, {
    cwd: join(import.meta.dirname, "../.."),
    env: { ...process.env, ...world.env },
  });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  assert.equal(child.exitCode, 0, err);
  return JSON.parse(out);
}

test("FEDC-D-1, FEDC-D-5 google-auth-library exchanges the file of a pod, again and again where it is reusable", async () => {
  const told = await run("pod/1");
  const subjects = told.map(({ token, message }) => (token === undefined ? message : claimsOf(token).sub));
  assert.deepEqual(subjects, ["platform://pods/pod%2F1", "platform://pods/pod%2F1"]);
});

test("FEDC-D-7, FEDC-C-1 google-auth-library exchanges a file that is single use once, and tells the refusal", async () => {
  const [first, second] = await run("job/1");
  assert.equal(claimsOf(first?.token ?? "").sub, "platform://jobs/job%2F1");
  assert.match(second?.message ?? "", /invalid_request/);
  assert.equal((await world.events()).at(-1)?.reason, "grant_replayed");
});
