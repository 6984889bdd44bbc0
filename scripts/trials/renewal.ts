/** Certificates of a server are renewed again and again without a signal, while clients connect and ask without pause. */
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { FILES_LOOK_MS } from "../../src/limits/process.ts";
import { type Authority, derOf } from "../dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../dev-pki.ts";
import { startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";

const CLIENTS = 4;
const LOOKS_MAX = 4;

export type RenewalOutcome = {
  requests: number;
  failed: readonly string[];
  renewals: number;
  slowestMs: number;
};

/** Clients with a new connection for each request, and as many that keep theirs. */
export async function renewUnderLoad(rounds: number): Promise<RenewalOutcome> {
  // One authority for all, so that clients verify every certificate by it.
  const authority = await makeAuthority("of all renewals");
  const production = await makeProduction({ limits: { requestsPerSecondByClient: 100_000 } });
  const tls = join(production.folder, "tls");
  writeFileSync(join(tls, "ca.pem"), authority.certPem);
  let der = await renew(authority, tls);
  const server = await startServer(production.configFile);
  const agents = Array.from({ length: CLIENTS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const failed: string[] = [];
  const slowest: number[] = [];
  let requests = 0;
  let stopped = false;
  const ask = async (agent: Agent | undefined): Promise<void> => {
    while (!stopped) {
      requests++;
      const status = await production.token(undefined, agent, authority.certPem).catch(String);
      if (status !== 200) failed.push(String(status));
    }
  };
  const clients = [...agents, ...agents.map(() => undefined)].map(ask);
  try {
    for (let round = 0; round < rounds; round++) {
      der = await renew(authority, tls);
      const startMs = performance.now();
      while (!(await shownAt(server.port)).equals(der)) {
        if (performance.now() > startMs + LOOKS_MAX * FILES_LOOK_MS)
          throw new Error("a renewal was not taken");
        await sleep(100);
      }
      slowest.push(Math.round(performance.now() - startMs));
    }
  } finally {
    stopped = true;
    await Promise.all(clients);
    for (const agent of agents) agent.destroy();
    await server.stop();
    production.remove();
  }
  return { requests, failed, renewals: rounds, slowestMs: Math.max(...slowest) };
}

/** First the certificate, and the key a moment later, as tools do. */
async function renew(authority: Authority, folder: string): Promise<Buffer> {
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost", "127.0.0.1"]);
  for (const [name, content] of [
    ["cert.pem", certPem],
    ["key.pem", keyPem],
  ] as const) {
    writeFileSync(join(folder, `${name}.next`), content);
    renameSync(join(folder, `${name}.next`), join(folder, name));
    await sleep(50);
  }
  return derOf(certPem);
}

async function shownAt(port: number): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const shown = socket.getPeerX509Certificate()?.raw ?? Buffer.alloc(0);
  socket.destroy();
  return shown;
}

export async function runRenewal(rounds: number): Promise<readonly string[]> {
  const { requests, failed, renewals, slowestMs } = await renewUnderLoad(rounds);
  if (failed.length > 0) throw new Error(`${failed.length} of ${requests} requests failed: ${failed[0]}`);
  return [
    `${failed.length} of ${requests} requests failed in ${renewals} renewals, each in force after ${slowestMs} ms at most`,
  ];
}
