/** How many connections fit into what the system lets the server open: told at the start, and heeded. */
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { startServer } from "../scripts/server-process.ts";
import { makeProduction } from "../scripts/trials/production.ts";
import type { Config } from "../src/config/config.ts";
import type { Notice } from "../src/http/log-events.ts";
import { CONNECTIONS_MAX, CONNECTIONS_TOLD_MS } from "../src/limits/connections.ts";
import { connectionsThatFit, fitConnections, tellRefusals } from "../src/start/capacity.ts";
import { makeTime } from "./support/timers.ts";
import { until } from "./support/until.ts";

const SQLITE = { store: { sqlite: "a" } } as unknown as Config["fixed"];
const PROXIED = {
  store: { postgres: "b", connections: 30 },
  mtls: {},
  proxy: {},
} as unknown as Config["fixed"];

test("what fits is shared by the listeners, beside the store, fetches and the operator's tools", () => {
  assert.equal(connectionsThatFit(SQLITE, 256), 256 - 64 - 32 - 64 - 10);
  assert.equal(connectionsThatFit(PROXIED, 1_024), Math.floor((1_024 - 64 - 32 - 64 - 30) / 3));
  assert.equal(connectionsThatFit(SQLITE, 1_048_576), CONNECTIONS_MAX);
  assert.equal(connectionsThatFit(SQLITE, Number.POSITIVE_INFINITY), CONNECTIONS_MAX);
});

test("a limit of the system that is too low is told, and one into which nothing fits stops the start", () => {
  const told: Notice[] = [];
  const log = { tell: (notice: Notice) => void told.push(notice) };
  assert.equal(fitConnections(SQLITE, log, 100_000), CONNECTIONS_MAX);
  assert.equal(told.length, 0);
  assert.equal(fitConnections(SQLITE, log, 256), 86);
  assert.match(
    told[0]?.message ?? "",
    /open 256 files, into which 86 connections .* and not 4096.* LimitNOFILE=/,
  );
  assert.throws(() => fitConnections(SQLITE, log, 170), {
    name: "StartRefused",
    message: /into which 0 connections/,
  });
});

test("refused connections are told once a minute, by listener and reason", () => {
  const told: string[] = [];
  const time = makeTime(0);
  const tell = tellRefusals({ tell: ({ message }) => void told.push(message) }, time.clock);
  for (let times = 0; times < 1_000; times++) tell("listen", "limit");
  tell("listen", "files");
  tell("mtls", "limit");
  assert.equal(told.length, 3);
  time.nowMs = CONNECTIONS_TOLD_MS - 1;
  tell("listen", "limit");
  assert.equal(told.length, 3);
  time.nowMs = CONNECTIONS_TOLD_MS;
  tell("listen", "limit");
  assert.equal(told.length, 4);
});

test("a server that may open few files refuses what does not fit, says so, and stays healthy", async (t) => {
  const production = await makeProduction({ operations: { port: 0 } });
  t.after(() => production.remove());
  const filesMax = 190;
  const server = await startServer(production.configFile, { filesMax });
  t.after(() => server.child.kill("SIGKILL"));
  const told = () => server.lines.map((line) => JSON.parse(line));
  assert.equal(told().filter(({ event }) => event === "files_limited").length, 1);
  const sockets: Socket[] = [];
  t.after(() => sockets.map((socket) => socket.destroy()));
  let refused = 0;
  for (let count = 0; count < filesMax; count++) {
    const localAddress = `127.0.0.${1 + (count % 4)}`;
    const socket = connect({ port: server.port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      refused += 1;
    });
    sockets.push(socket);
  }
  const fits = connectionsThatFit(SQLITE, filesMax);
  await until(() => refused === filesMax - fits, "what does not fit is refused");
  const { port } = told().find(({ listener }) => listener === "operations");
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  assert.equal((await ask("/readyz")).status, 200);
  const counted = `mandate_connections_refused_total{listener="listen",why="limit"} ${filesMax - fits}`;
  assert.ok((await (await ask("/metrics")).text()).split("\n").includes(counted));
  assert.equal(told().filter(({ event }) => event === "connections_refused").length, 1);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await production.token().catch(() => 0)) === 200, "there is room again");
});

test("where few connections fit, one source does not take them all, and others are served", async (t) => {
  const production = await makeProduction();
  t.after(() => production.remove());
  const filesMax = 190;
  const server = await startServer(production.configFile, { filesMax });
  t.after(() => server.child.kill("SIGKILL"));
  const sockets: Socket[] = [];
  t.after(() => sockets.map((socket) => socket.destroy()));
  let refused = 0;
  for (let count = 0; count < filesMax; count++) {
    const socket = connect({ port: server.port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      refused += 1;
    });
    sockets.push(socket);
  }
  const half = Math.ceil(connectionsThatFit(SQLITE, filesMax) / 2);
  await until(
    () => refused >= filesMax - connectionsThatFit(SQLITE, filesMax),
    "what does not fit is refused",
  );
  const agent = new Agent({ localAddress: "127.0.0.9" });
  t.after(() => agent.destroy());
  assert.equal(await production.token(undefined, agent).catch(() => 0), 200);
  assert.equal(refused, filesMax - half);
});
