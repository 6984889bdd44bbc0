/**
 * How much work one request is, counted on a running server: promises, statements, digests, JSON texts and timers, which
 * do not depend on the machine. The table is an upper bound; a step that saves work lowers it in the same commit.
 */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import crypto from "node:crypto";
import { once } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { StatementSync } from "node:sqlite";
import { after, suite, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import v8 from "node:v8";
import { runInNewContext } from "node:vm";
import { basic, encodeForm } from "../scripts/http-client.ts";
import { loadConfig } from "../src/config/config.ts";
import { createJob } from "../src/flows/create-job.ts";
import { openListeners } from "../src/start/listeners.ts";
import type { Log } from "../src/start/log.ts";
import { openService } from "../src/start/service.ts";
import {
  ACCESS_TOKEN,
  consentAdded,
  consentOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeSurroundings,
  workload,
} from "./support/world.ts";

type Work = Record<(typeof COUNTED)[number], number>;
const COUNTED = ["promises", "statements", "digests", "jsonTexts", "timers", "sorts"] as const;

/**
 * Begin and commit of a transaction are not among the statements, which are those with rows. A promise that is awaited
 * counts twice, because the platform makes a second one for what counts them; 21 are those of a commit, which the requests
 * of one turn share. Nothing is sorted, because the members of an event are built in order (RFC8785-3.2.3-1). Five digests
 * and four texts are those of a receipt: what is signed, the salts, and the three parts of the record (RCPT-D-1, RCPT-D-8).
 */
const MOST: Readonly<Record<string, Work>> = {
  "a secret": { promises: 39, statements: 4, digests: 8, jsonTexts: 16, timers: 1, sorts: 0 },
  "a JWT-SVID": { promises: 39, statements: 4, digests: 8, jsonTexts: 18, timers: 1, sorts: 0 },
  "a delegation": { promises: 39, statements: 6, digests: 11, jsonTexts: 21, timers: 1, sorts: 0 },
  "the same delegation again": {
    promises: 39,
    statements: 6,
    digests: 9,
    jsonTexts: 21,
    timers: 1,
    sorts: 0,
  },
  "an exchange": { promises: 39, statements: 7, digests: 9, jsonTexts: 17, timers: 1, sorts: 0 },
  "an exchange in a job": { promises: 39, statements: 7, digests: 9, jsonTexts: 17, timers: 1, sorts: 0 },
  introspection: { promises: 20, statements: 1, digests: 2, jsonTexts: 2, timers: 1, sorts: 0 },
};

/** What runs beside a request now and then is not its work, so the least of several counts. */
const REQUESTS = 12;

const API = "https://api.example";
const PLANNER = "planner";
const SECRET = "the-secret-of-all-clients-12345678";
const scopes = ["trips.read"];
const secretly = { method: "client_secret_basic", secrets: [SECRET] };
const planner = workload("planner");
const owned = { allow: "client_credentials", targets: [API], scopes };
const QUIET: Log = {
  entry: () => true,
  request: () => {},
  tell: () => {},
  status: () => ({ waitingBytes: 0, lostLines: 0 }),
  close: () => {},
};

suite("the work of one request", async () => {
  const server = await openServer();
  after(server.stop);
  const { svid, as } = server;
  const own = { grant_type: "client_credentials", audience: API, scope: "trips.read" };
  const delegation = async (): Promise<Form> => {
    const actor = await svid("planner", { claims: { jti: crypto.randomUUID() } });
    const user = await server.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read" });
    const { audience, scope } = own;
    const tokens = {
      subject_token: user,
      subject_token_type: JWT,
      actor_token: actor,
      actor_token_type: JWT,
    };
    return { grant_type: EXCHANGE, ...as(actor), ...tokens, audience, scope };
  };
  const same = await delegation();
  const goOn = async (more: Form): Promise<Asked> => {
    const first = await server.ask({ form: { ...(await delegation()), audience: PLANNER, ...more } });
    const own = { subject_token: String(first.access_token), subject_token_type: ACCESS_TOKEN };
    return { form: { ...same, ...own } };
  };
  const [outside, inside] = [await goOn({}), await goOn({ mandate_job: server.job })];
  const bySecret = { authorization: basic("report", SECRET) };
  const token = String((await server.ask({ form: own, headers: bySecret })).access_token);
  const asked: Record<string, () => Promise<Asked>> = {
    "a secret": async () => ({ form: own, headers: bySecret }),
    "a JWT-SVID": async () => ({ form: { ...own, ...as(await svid("planner")) } }),
    "a delegation": async () => ({ form: await delegation() }),
    "the same delegation again": async () => ({ form: same }),
    "an exchange": async () => outside,
    "an exchange in a job": async () => inside,
    introspection: async () => ({ path: "/introspect", form: { token }, headers: bySecret }),
  };
  for (const [name, make] of Object.entries(asked)) {
    test(`${name} is no more work than the table says`, async () => {
      const least = await countLeast(server, make);
      const most: Partial<Work> = MOST[name] ?? {};
      const grown = COUNTED.filter((one) => least[one] > (most[one] ?? 0));
      assert.deepEqual(grown, [], `the row of today: ${JSON.stringify({ [name]: least })}`);
    });
  }
  test("a request that was answered is garbage at the next small collection, and does not wait for a full one", async () => {
    const request = (await asked.introspection?.()) ?? assert.fail();
    const ask = async (times: number): Promise<void> => {
      for (let time = 0; time < times; time++) {
        await server.ask(request);
        if (time % 100 === 0) collect({ type: "minor" });
      }
    };
    await ask(200);
    collect();
    const before = oldBytes();
    await ask(REPEATED);
    const keptBytes = (oldBytes() - before) / REPEATED;
    assert.ok(
      keptBytes < KEPT_BYTES_MAX,
      `${keptBytes} bytes of each request are left in the old generation`,
    );
  });
});

/** With those before, fewer than one connection may have. */
const REPEATED = 600;
/** Client and server are in this process: 3,800 are left where the server keeps none, and 7,400 where it keeps a request. */
const KEPT_BYTES_MAX = 5_500;
v8.setFlagsFromString("--expose-gc");
const collect: (options?: { type: "minor" }) => void = runInNewContext("gc");
const oldBytes = (): number =>
  v8.getHeapSpaceStatistics().find((one) => one.space_name === "old_space")?.space_used_size ?? Number.NaN;

type Asked = { path?: string; form: Form; headers?: Record<string, string> };
type Server = Awaited<ReturnType<typeof openServer>>;

async function openServer() {
  const surroundings = await makeSurroundings({
    clients: { report: secretly },
    targets: [
      { names: [API], scopes, introspectors: ["report"] },
      { names: [PLANNER], owners: [planner], scopes },
    ],
    policies: [
      { ...owned, id: "report", clients: ["report"] },
      { ...owned, id: "planner", actors: [planner] },
      {
        ...{ id: "delegates", allow: "delegation", actors: [planner], consent: "record" },
        ...{ subjects: { issuers: [IDP, ISSUER] }, subjectToken: { audiences: [ISSUER, "self"] } },
        ...{ targets: [API, PLANNER], scopes },
      },
    ],
  });
  const config = loadConfig(surroundings.configFile);
  assert.ok(config.ok, JSON.stringify(config));
  const service = await openService(config.value, { log: QUIET, onFatal: assert.fail });
  const { ports } = service;
  const consent = { ...consentOf("u-1", "planner", API, scopes), targets: [API, PLANNER] };
  assert.ok((await ports.journal.record({ event: consentAdded(consent), consent: { add: consent } })).ok);
  const order = { client: planner, subject: consent.origin, title: "the trip to Oslo" };
  const job = await createJob(ports, order, { reason: "by_operator", as: "operator" });
  const listeners = await openListeners(config.value.fixed, service, surroundings.configFile, QUIET);
  const { address: host, port } = listeners;
  const socket = connect({ host, port, ca: surroundings.ca, servername: "as.example" });
  await once(socket, "secureConnect");
  return {
    ...surroundings,
    job: job.ok ? job.value.id : assert.fail(job.error.kind),
    async ask(asked: Asked): Promise<Record<string, unknown>> {
      const answered = Promise.withResolvers<string>();
      exchange(socket, asked, answered.resolve);
      return bodyOf(await answered.promise);
    },
    async count(asked: Asked): Promise<Work> {
      const answered = Promise.withResolvers<{ answer: string; work: Work }>();
      // In a turn of its own, so that no promise of the test is among those that are counted.
      setImmediate(() => {
        const { work, stop } = startCounting();
        exchange(socket, asked, (answer) => {
          stop();
          answered.resolve({ answer, work });
        });
      });
      const { answer, work } = await answered.promise;
      bodyOf(answer);
      return work;
    },
    async stop() {
      socket.destroy();
      await listeners.shutdown();
      await service.close();
      await surroundings.remove();
    },
  };
}

/** Sends one request, with callbacks alone, so that all promises are the server's. */
function exchange(
  socket: TLSSocket,
  { path = "/token", form, headers = {} }: Asked,
  onAnswer: (answer: string) => void,
): void {
  const body = encodeForm(form);
  const fields = {
    ...{ host: "as.example", "content-type": "application/x-www-form-urlencoded" },
    ...{ ...headers, "content-length": Buffer.byteLength(body) },
  };
  let answer = "";
  const onData = (chunk: Buffer): void => {
    answer += chunk.toString("latin1");
    const [head = "", content] = answer.split("\r\n\r\n", 2);
    if (content?.length !== Number(/content-length: (\d+)/i.exec(head)?.[1])) return;
    socket.off("data", onData);
    onAnswer(answer);
  };
  socket.on("data", onData);
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

function bodyOf(answer: string): Record<string, unknown> {
  assert.match(answer, /^HTTP\/1\.1 200 /);
  return JSON.parse(answer.split("\r\n\r\n", 2)[1] ?? "");
}

async function countLeast(server: Server, make: () => Promise<Asked>): Promise<Work> {
  const counts: Work[] = [];
  while (counts.length < REQUESTS) counts.push(await server.count(await make()));
  const least = (one: keyof Work): number => Math.min(...counts.map((work) => work[one]));
  return Object.fromEntries(COUNTED.map((one) => [one, least(one)])) as Work;
}

/** Counts by the functions of the platform through which all of that goes. */
function startCounting(): { work: Work; stop(): void } {
  const work: Work = { promises: 0, statements: 0, digests: 0, jsonTexts: 0, timers: 0, sorts: 0 };
  const statement = StatementSync.prototype;
  const stillMs = performance.now();
  const undo = [
    ...(["get", "all", "run", "iterate"] as const).map((name) =>
      counted(statement, name, work, "statements"),
    ),
    ...(["hash", "createHash"] as const).map((name) => counted(crypto, name, work, "digests")),
    counted(JSON, "stringify", work, "jsonTexts"),
    counted(Array.prototype as unknown[], "sort", work, "sorts"),
    counted(globalThis, "setTimeout", work, "timers"),
    // The journal waits one more turn of the event loop after a turn that took long, which is the machine's doing.
    replaced(performance, "now", () => stillMs),
  ];
  syncBuiltinESMExports();
  const hook = createHook({
    init(_, type) {
      if (type === "PROMISE") work.promises++;
    },
  });
  hook.enable();
  return {
    work,
    stop() {
      hook.disable();
      for (const restore of undo) restore();
      syncBuiltinESMExports();
    },
  };
}

function counted<T extends object>(of: T, name: keyof T, work: Work, as: keyof Work): () => void {
  const usual = of[name] as (...values: unknown[]) => unknown;
  const counting = function (this: unknown, ...values: unknown[]): unknown {
    work[as]++;
    return Reflect.apply(usual, this, values);
  };
  return replaced(of, name, counting as T[keyof T]);
}

function replaced<T extends object>(of: T, name: keyof T, by: T[keyof T]): () => void {
  const usual = of[name];
  Object.assign(of, { [name]: by });
  return () => void Object.assign(of, { [name]: usual });
}
