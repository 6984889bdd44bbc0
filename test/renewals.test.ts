/** Files of the configuration that change while the server runs are taken without a signal; what ends is told before. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { derOf } from "../scripts/dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../scripts/dev-pki.ts";
import { basic } from "../scripts/http-client.ts";
import { freePorts } from "../scripts/server-process.ts";
import { FILES_LOOK_MS } from "../src/limits/process.ts";
import { stop } from "./support/stop.ts";
import { until } from "./support/until.ts";
import { makeWorld, type World } from "./support/world.ts";

const API = "https://api.example";
const DAY_SECONDS = 86_400;
const SECRETS = ["first-first-first-first-first-first-1", "next-next-next-next-next-next-next-22"] as const;

let world: World;
let health: number;
let mtls: number;
before(async () => {
  [health = 0, mtls = 0] = await freePorts(2);
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  world = await makeWorld(
    {
      mtls: { host: "127.0.0.1", port: mtls, tls, origin: "https://mtls.example" },
      operations: { port: health },
      clients: {
        job: { method: "client_secret_basic", secrets: [{ file: "job-secret" }], defaultTarget: API },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        { id: "job", allow: "client_credentials", clients: ["job"], targets: [API], scopes: ["read"] },
      ],
    },
    { clock: true, files: { "job-secret": SECRETS[0] } },
  );
});
after(() => stop(world));

async function shownAt(port: number): Promise<Buffer | undefined> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const shown = socket.getPeerX509Certificate()?.raw;
  socket.destroy();
  return shown;
}

const told = (text: string): number =>
  [...world.server.lines, ...world.server.errors].filter((line) => line.includes(text)).length;

async function operations(path: string): Promise<{ status: number; text: string }> {
  const [response] = await once(get({ port: health, path, host: "127.0.0.1" }), "response");
  return { status: response.statusCode, text: (await response.toArray()).join("") };
}

const issue = async (seconds?: number) =>
  issueServerCertificate(await makeAuthority("renewed"), ["localhost", "127.0.0.1"], seconds);
const write = (name: string, content: string): void => writeFileSync(join(world.folder, name), content);
const token = async (secret: string): Promise<number> =>
  (await world.token({ grant_type: "client_credentials" }, { authorization: basic("job", secret) })).status;

/** Lets the time of one look pass. */
const look = (): void => world.pass(FILES_LOOK_MS / 1000);

test("a certificate is taken with its key only, on all listeners, and a pair that stays apart is told once", async () => {
  const before = await shownAt(world.server.port);
  const { keyPem, certPem } = await issue();
  write("tls/cert.pem", certPem);
  const refused = "not reloaded: listen.tls.key: is not the private key of the certificate";
  await until(() => {
    look();
    return told(refused) > 0;
  }, "the pair that does not fit is told");
  assert.deepEqual(await shownAt(world.server.port), before);
  assert.match((await operations("/metrics")).text, /\nmandate_configuration_refused 1\n/);
  assert.equal(await token(SECRETS[0]), 200);
  write("tls/key.pem", keyPem);
  await until(() => {
    look();
    return told("mtls has a new certificate") > 0;
  }, "the pair is taken");
  assert.equal(told(refused), 1);
  for (const port of [world.server.port, mtls]) assert.deepEqual(await shownAt(port), derOf(certPem));
  assert.match((await operations("/metrics")).text, /\nmandate_configuration_refused 0\n/);
});

test("a secret is taken from its file, and nothing that was edited in the configuration itself", async () => {
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  writeFileSync(world.configFile, JSON.stringify({ ...config, policies: [] }));
  const before = told("reloaded: files that");
  write("job-secret", SECRETS[1]);
  await until(() => {
    look();
    return told("reloaded: files that") > before;
  }, "the secret is taken");
  assert.equal(await token(SECRETS[1]), 200, "by a rule that the edited configuration lacks");
  assert.equal(await token(SECRETS[0]), 401);
  writeFileSync(world.configFile, JSON.stringify(config));
});

test("HTTP-D-7 a certificate is warned of before its end, and with one that has ended the server is not ready", async () => {
  const { keyPem, certPem } = await issue(30 * DAY_SECONDS);
  const since = /mandate_configuration_since_seconds\{policy="sha256:[0-9a-f]+"\} (\d+)/;
  const sinceBefore = Number(since.exec((await operations("/metrics")).text)?.[1]);
  write("tls/key.pem", keyPem);
  write("tls/cert.pem", certPem);
  const state = async (): Promise<string> =>
    JSON.parse((await operations("/readyz")).text).certificates["listen.tls.cert"].state;
  await until(async () => {
    look();
    return Number(since.exec((await operations("/metrics")).text)?.[1]) > sinceBefore;
  }, "the pair is taken");
  assert.equal(await state(), "valid");
  world.pass(17 * DAY_SECONDS);
  assert.equal(await state(), "ends_soon");
  assert.equal((await operations("/readyz")).status, 200);
  await until(() => told("listen.tls.cert: the certificate ends on 20") === 1, "the end is told");
  world.pass(17 * DAY_SECONDS);
  assert.deepEqual([(await operations("/readyz")).status, await state()], [503, "ended"]);
  await until(() => told("listen.tls.cert: the certificate ended on 20") === 1, "that it has ended is told");
});
