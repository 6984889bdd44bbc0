/** The log cannot be written: its pipe is closed, or its disk is full. The server answers on, and ends with 0. */
import { closeSync, openSync } from "node:fs";
import { type ServerProcess, startServer } from "../server-process.ts";
import { makeProduction, type Production } from "./production.ts";

const REQUESTS = 5;

/** `exits`: servers that ended by themselves; `unanswered`: requests that got no token. */
export type LogPipeOutcome = { exits: number; unanswered: number; codes: readonly (number | null)[] };

/** The reader of the log's pipe goes away. */
export const closePipe = (rounds: number): Promise<LogPipeOutcome> =>
  eachRound(rounds, async (configFile) => {
    const server = await startServer(configFile);
    server.child.stdout?.destroy();
    return server;
  });

/** Every write of the log fails with ENOSPC, from the first line on. */
export const fillDisk = (rounds: number): Promise<LogPipeOutcome> =>
  eachRound(rounds, async (configFile) => {
    const stdout = openSync("/dev/full", "w");
    try {
      return await startServer(configFile, { stdout });
    } finally {
      closeSync(stdout);
    }
  });

async function eachRound(
  rounds: number,
  start: (configFile: string) => Promise<ServerProcess>,
): Promise<LogPipeOutcome> {
  const production = await makeProduction();
  let exits = 0;
  let unanswered = 0;
  const codes: (number | null)[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      const server = await start(production.configFile).catch(() => undefined);
      unanswered += await countUnanswered(production);
      if (server === undefined || server.child.exitCode !== null) exits += 1;
      codes.push((await server?.stop()) ?? null);
    }
  } finally {
    production.remove();
  }
  return { exits, unanswered, codes };
}

async function countUnanswered({ token }: Production): Promise<number> {
  let unanswered = 0;
  for (let one = 0; one < REQUESTS; one++) {
    const status = await token().catch(() => 0);
    if (status !== 200) unanswered += 1;
  }
  return unanswered;
}

export async function runLogPipe(rounds: number): Promise<readonly string[]> {
  const tell = (what: string, { exits, unanswered, codes }: LogPipeOutcome): string =>
    `${what}: ${exits} exits in ${rounds}, ${unanswered} of ${rounds * REQUESTS} requests without a token, ` +
    `${codes.filter((code) => code === 0).length} ended with 0 on SIGTERM`;
  return [tell("pipe closed", await closePipe(rounds)), tell("disk full", await fillDisk(rounds))];
}
