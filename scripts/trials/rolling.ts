/** Three instances on one PostgreSQL over TLS, restarted one after the other under load, behind a balancer. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDatabaseServer } from "../../test/support/pg-transports.ts";
import { freshDatabase } from "../../test/support/postgres.ts";
import { until } from "../../test/support/until.ts";
import { freePorts, type ServerProcess, startServer } from "../server-process.ts";
import { type Backend, openBalancer } from "./balancer.ts";
import { makeProduction, type Production } from "./production.ts";

const INSTANCES = 3;
const DATABASE = "MANDATE_TRIAL_DATABASE";
const INSTANCE = "MANDATE_TRIAL_INSTANCE";
/** Clients that keep their connection: pauses between their requests, as parts of the drain. */
const PAUSES = [0, 0.005, 0.1, 0.4];
/** Clients with a new connection for each request. */
const CHANGING = 3;
/** From these it is known how long a request takes here. */
const REQUESTS_BEFORE = 30;
/** As README says; and without a drain, for comparison. */
const DRAIN_SECONDS = [5, 0];

export type RollingOptions = {
  postgres: string;
  /** PEM of the authority of the database; without it there is no TLS. */
  authority?: string;
  restarts: number;
  drainSeconds: number;
  balancerMs: number;
  /** The shortest pause of a client, and the one before each new connection; a trial sends what it can. */
  pausesMs?: { kept: number; changing: number };
};

export type RollingOutcome = {
  answered: number;
  /** Requests without a token: status or fault of the connection, which client, how long after the last SIGTERM. */
  failed: readonly string[];
  /** Connections that an instance refused or reset, as the balancer saw them. */
  broken: number;
  /** The longest time for which the balancer did not look at an instance, or for which a request took before the restarts. */
  slowestMs: number;
  /** Exit codes other than 0. */
  exits: readonly (number | null)[];
};

export async function rollInstances(options: RollingOptions): Promise<RollingOutcome> {
  const production = await makeProduction({
    store: { postgres: { env: DATABASE } },
    audit: { instance: { env: INSTANCE } },
    limits: { requestsPerSecondByClient: 100_000 },
  });
  const { postgres, authority } = options;
  if (authority !== undefined) writeFileSync(join(production.folder, "database-ca.pem"), authority);
  const database =
    authority === undefined ? postgres : `${postgres}?sslmode=verify-full&sslrootcert=database-ca.pem`;
  const config = JSON.parse(readFileSync(production.configFile, "utf8"));
  const ports = await freePorts(2 * INSTANCES);
  const instances = Array.from({ length: INSTANCES }, (_, index) => {
    const backend = { port: ports[2 * index] ?? 0, health: ports[2 * index + 1] ?? 0 };
    const file = join(production.folder, `config-${index}.json`);
    const listen = { ...config.listen, port: backend.port, drainSeconds: options.drainSeconds };
    writeFileSync(file, JSON.stringify({ ...config, listen, operations: { port: backend.health } }));
    const environment = { [DATABASE]: database, [INSTANCE]: `pod-${index}` };
    return { backend, start: () => startServer(file, { environment }) };
  });
  const servers: ServerProcess[] = [];
  const backends = instances.map(({ backend }): Backend => backend);
  const balancer = await openBalancer(config.listen.port, backends, options.balancerMs);
  let load: ReturnType<typeof startLoad> | undefined;
  try {
    servers.push(...(await Promise.all(instances.map(({ start }) => start()))));
    await Promise.all(backends.map(balancer.untilReady));
    load = startLoad(production, 1_000 * Math.max(1, options.drainSeconds), options.pausesMs);
    await load.untilAnswered(REQUESTS_BEFORE);
    const exits: (number | null)[] = [];
    for (let restart = 0; restart < options.restarts; restart++) {
      const index = restart % INSTANCES;
      const [instance, server] = [instances[index], servers[index]];
      if (instance === undefined || server === undefined) break;
      load.noteRestart();
      exits.push(await server.stop());
      servers[index] = await instance.start();
      await balancer.untilReady(instance.backend);
    }
    const { answered, failed } = await load.stop();
    const [broken, slowestMs] = [balancer.broken(), Math.max(balancer.slowestMs(), load.slowestMs())];
    return { answered, failed, broken, slowestMs, exits: exits.filter((code) => code !== 0) };
  } finally {
    await Promise.all(servers.map((server) => server.stop("SIGKILL")));
    await load?.stop();
    balancer.close();
    production.remove();
  }
}

/** Requests tokens until it is told to stop. */
function startLoad({ token }: Production, drainMs: number, pausesMs = { kept: 0, changing: 5 }) {
  const agents: Agent[] = [];
  const failed: string[] = [];
  let answered = 0;
  let going = true;
  let restartMs = 0;
  let slowestMs = 0;
  const run = async (pauseMs: number, agent?: Agent): Promise<void> => {
    while (going) {
      const startMs = performance.now();
      const status = await token(undefined, agent).catch(
        (fault: NodeJS.ErrnoException) => fault.code ?? fault.message,
      );
      if (restartMs === 0) slowestMs = Math.max(slowestMs, performance.now() - startMs);
      const afterMs = Math.round(performance.now() - restartMs);
      const who = agent === undefined ? "new connection" : `pauses of ${pauseMs} ms`;
      if (status === 200) answered += 1;
      else failed.push(`${status} (${who}, ${afterMs} ms after SIGTERM)`);
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  const keeping = PAUSES.map((part) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return run(Math.max(part * drainMs, pausesMs.kept), agent);
  });
  const changing = Array.from({ length: CHANGING }, () => run(pausesMs.changing));
  return {
    untilAnswered: (count: number) => until(() => answered >= count, `${count} tokens before the restart`),
    slowestMs: () => slowestMs,
    noteRestart() {
      restartMs = performance.now();
    },
    async stop() {
      going = false;
      await Promise.all([...keeping, ...changing]);
      for (const agent of agents) agent.destroy();
      return { answered, failed };
    },
  };
}

export async function runRolling(restarts: number): Promise<readonly string[]> {
  const server = await startDatabaseServer({ durable: true });
  try {
    const lines: string[] = [];
    for (const drainSeconds of DRAIN_SECONDS) {
      const database = { postgres: await freshDatabase(server), authority: server.authority.certPem };
      const outcome = await rollInstances({ ...database, restarts, drainSeconds, balancerMs: 1_000 });
      lines.push(`drain of ${drainSeconds} s: ${describe(outcome)}`);
      if (drainSeconds > 0) assertNoneLost(outcome);
    }
    return lines;
  } finally {
    await server.stop();
  }
}

export function assertNoneLost(outcome: RollingOutcome): void {
  const { answered, failed, broken, exits } = outcome;
  assert.ok(answered > 0);
  assert.deepEqual({ failed, broken, exits }, { failed: [], broken: 0, exits: [] }, describe(outcome));
}

const describe = ({ answered, failed, broken, exits }: RollingOutcome): string =>
  `${answered} tokens, ${failed.length} requests failed${failed
    .slice(0, 3)
    .map((one) => `, ${one}`)
    .join("")}, ` + `${broken} connections refused or reset, ${exits.length} exits other than 0`;
