/**
 * Connections that send all their requests at once, against the same requests sent one after the other: how long
 * another client waits meanwhile, and how large the server's process becomes.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";

type Load = { connections: number; requests: number };
type LoadOutcome = {
  /** Requests without an answer, because the server cut their connection. */
  unanswered: number;
  /** Time until every request is answered. */
  seconds: number;
  /** Longest time that another client waited for its answer. */
  waitedSeconds: number;
  /** Largest resident memory of the process so far. */
  peakMiB: number;
};

const GET = "GET /jwks HTTP/1.1\r\nHost: localhost\r\n\r\n";
const STATUS_LINE = "HTTP/1.1 200 ";

/** On a fresh server. `ahead`: requests that a connection sends before it reads their answers. */
async function underLoad({ connections, requests }: Load, ahead: number): Promise<LoadOutcome> {
  const production = await makeProduction();
  const server = await startServer(production.configFile);
  const ca = readFileSync(join(production.folder, "tls/ca.pem"), "utf8");
  const open = async (): Promise<TLSSocket> => {
    const socket = connect({ host: "127.0.0.1", port: server.port, servername: "localhost", ca });
    await once(socket, "secureConnect");
    socket.on("error", () => undefined);
    return socket;
  };
  try {
    const other = await open();
    const sockets = await Promise.all(Array.from({ length: connections }, open));
    const startMs = performance.now();
    let done = false;
    const all: Promise<number[]> = Promise.all(
      sockets.map((socket) => send(socket, requests, ahead)),
    ).finally(() => {
      done = true;
    });
    let waitedMs = 0;
    // The connection of the other client has few of the requests that one connection may have.
    while (!done) {
      const sentMs = performance.now();
      await send(other, 1, 1);
      waitedMs = Math.max(waitedMs, performance.now() - sentMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const unanswered = (await all).reduce((sum, one) => sum + one, 0);
    const seconds = (performance.now() - startMs) / 1000;
    const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
    const peakMiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
    for (const socket of [other, ...sockets]) socket.destroy();
    return { unanswered, seconds, waitedSeconds: waitedMs / 1000, peakMiB };
  } finally {
    await server.stop("SIGKILL");
    production.remove();
  }
}

/** Sends so many requests and waits for as many answers; how many did not come before the connection was cut. */
function send(socket: TLSSocket, requests: number, ahead: number): Promise<number> {
  return new Promise((resolve) => {
    let answered = 0;
    let sent = 0;
    let tail = "";
    const sendMore = (): void => {
      const count = Math.min(ahead, requests - sent);
      sent += count;
      socket.write(GET.repeat(count));
    };
    const settle = (): void => {
      socket.removeListener("data", read).removeListener("close", settle);
      resolve(requests - answered);
    };
    const read = (chunk: Buffer): void => {
      const parts = (tail + chunk.toString("latin1")).split(STATUS_LINE);
      answered += parts.length - 1;
      tail = (parts.at(-1) ?? "").slice(1 - STATUS_LINE.length);
      if (answered === requests) settle();
      else if (answered === sent) sendMore();
    };
    socket.on("data", read).on("close", settle);
    sendMore();
  });
}

const LOAD: Load = { connections: 64, requests: 1000 };

export async function runPipelining(rounds: number): Promise<readonly string[]> {
  const lines: string[] = [];
  const tell = (what: string, { unanswered, seconds, waitedSeconds, peakMiB }: LoadOutcome) =>
    `${what}: ${unanswered} unanswered after ${seconds.toFixed(1)} s, another client waited ${waitedSeconds.toFixed(2)} s ` +
    `at most, ${peakMiB.toFixed(0)} MiB`;
  for (let round = 0; round < rounds; round++) {
    lines.push(tell("one after the other", await underLoad(LOAD, 1)));
    lines.push(tell("pipelined", await underLoad(LOAD, LOAD.requests)));
  }
  return lines;
}
