/** The instances of the rehearsal while they run, the load beside them, and the questions that a client asks. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { ask } from "../../bench/children.ts";
import { type Answer, basic, type Form, postForm } from "../../http-client.ts";
import { type LoadOrder, LoadReport } from "./load.ts";
import type { Server } from "./server.ts";
import { API, CLIENT, type Instance, makeSite, SCOPE, type Site } from "./site.ts";
import { cpuMsOf } from "./usage.ts";
import { Verified } from "./verifying.ts";

const PER_SECOND = 300;
/** Takes what the load was answered. */
export const JTIS = "jtis";
const START_MS = 30_000;
const POLL_MS = 100;

export type Usage = Readonly<Record<"instances" | "PostgreSQL" | "client and verifier", number>>;

export type Stage = {
  site: Site;
  start(at: Instance): Server;
  server(at: Instance): Server;
  /** Ends when the instance is ready, and the balancer of the load has seen it. */
  balanced(at: Instance): Promise<void>;
  startLoad(): Promise<void>;
  /** What happened to the load since the last report; undefined while there is none. */
  report(): Promise<LoadReport | undefined>;
  stopLoad(): Promise<Verified>;
  /** CPU time in ms since the start, where the system tells it. */
  usage(): Promise<Usage | undefined>;
  post(at: Instance, path: string, form: Form): Promise<Answer>;
  /** A token of the client's own. */
  token(at: Instance): Promise<string>;
  close(): Promise<void>;
};

export async function openStage(instances: number): Promise<Stage> {
  const site = await makeSite(instances);
  const servers = new Map<Instance, Server>();
  const load = fork(join(import.meta.dirname, "load.ts"));
  let isLoaded = false;
  const order: LoadOrder = {
    ...{ issuer: site.issuer, ca: site.ca, instances: site.instances, perSecond: PER_SECOND, client: CLIENT },
    ...{
      secret: site.secretOf(CLIENT),
      idToken: site.idToken,
      api: API,
      scope: SCOPE,
      jtiFile: site.fileAt(JTIS),
    },
  };
  const post = (at: Instance, path: string, form: Form): Promise<Answer> => {
    const headers = { authorization: basic(CLIENT, site.secretOf(CLIENT)) };
    const connect = { host: "127.0.0.1", port: at.port };
    return postForm(`${site.issuer}${path}`, form, { ca: site.ca, headers, connect });
  };
  return {
    site,
    start(at) {
      const server = site.start(at);
      servers.set(at, server);
      return server;
    },
    server: (at) => servers.get(at) ?? assert.fail(`${at.name} was not started`),
    balanced: (at) =>
      within(START_MS, `${at.name} is ready for the balancer`, async () => {
        // Throws if it has ended.
        servers.get(at)?.listens();
        return (await ask(load, "ready", v.array(v.number()))).includes(at.port);
      }),
    async startLoad() {
      await ask(load, order, v.array(v.never()));
      isLoaded = true;
    },
    report: async () => (isLoaded ? ask(load, "report", LoadReport) : undefined),
    stopLoad() {
      isLoaded = false;
      return ask(load, "stop", Verified);
    },
    async usage() {
      if (process.platform !== "linux") return undefined;
      const sum = (pids: readonly number[]) => pids.reduce((all, pid) => all + cpuMsOf(pid), 0);
      return {
        instances: sum(site.instances.map((each) => servers.get(each)?.pid ?? assert.fail())),
        PostgreSQL: sum([await site.databasePid()]),
        "client and verifier": sum([load.pid ?? assert.fail()]),
      };
    },
    post,
    async token(at) {
      const { status, body, text } = await post(at, "/token", { grant_type: "client_credentials" });
      assert.equal(status, 200, text);
      return String(body.access_token);
    },
    async close() {
      load.disconnect();
      await site.close();
    },
  };
}

export async function within(ms: number, what: string, reached: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + ms;
  while (!(await reached())) {
    assert.ok(performance.now() < endMs, `not within ${ms} ms: ${what}`);
    await sleep(POLL_MS);
  }
}

export const untilListens = (server: Server): Promise<void> =>
  within(START_MS, "the server listens", async () => server.listens());
