/**
 * `npm run demo`: a tour over real sockets that checks every answer. It starts servers of its own on free ports;
 * `--against URL` plays the first part against a server that `npm start` started. Exits with 1 if a check fails.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { playFourServers } from "./demo/four-servers.ts";
import { API, playOneCompany, type Stage } from "./demo/one-company.ts";
import { openToldApi, streamTo } from "./demo/told-api.ts";
import { playTwoCompanies } from "./demo/two-companies.ts";
import { makeProfile } from "./dev-profile.ts";
import { loadIdp } from "./idp.ts";
import { freePorts, startServer } from "./server-process.ts";
import { openStandIn } from "./stand-in.ts";

const { values } = parseArgs({ options: { against: { type: "string" } } });

/** What to stop at the end, in reverse order. */
const closing: (() => unknown)[] = [];

async function stageAgainst(url: string): Promise<Stage> {
  const idp = await loadIdp("data");
  return { folder: "data", issuer: url.replace(/\/$/, ""), idp, fresh: false };
}

async function stageAt(folder: string): Promise<Stage> {
  const [port = 0, idpPort = 0, mtlsPort = 0, apiPort = 0] = await freePorts(4);
  const people = { mtlsPort };
  const { configFile, issuer } = await makeProfile(folder, { port, idpPort, people });
  const idp = await loadIdp(folder);
  const standIn = await openStandIn(folder);
  closing.push(() => standIn?.close());
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  const signals = { streams: { trips: streamTo(API, apiPort) } };
  writeFileSync(configFile, JSON.stringify({ ...config, signals }));
  const api = await openToldApi(folder, issuer, API, apiPort);
  closing.push(() => api.close());
  const server = await startServer(configFile);
  closing.push(() => server.stop());
  return { folder, issuer, idp, fresh: true, api };
}

async function play(): Promise<void> {
  console.log(
    "Mandate issues tokens that say who acts for whom. This tour sends real requests to real servers on this\n" +
      "machine and checks every answer.",
  );
  if (values.against !== undefined) return playOneCompany(await stageAgainst(values.against));
  const parent = mkdtempSync(join(tmpdir(), "mandate-demo-"));
  closing.push(() => rmSync(parent, { recursive: true, force: true }));
  await playOneCompany(await stageAt(join(parent, "data")));
  await playFourServers(parent, closing);
  await playTwoCompanies(parent, closing);
}

try {
  await play();
  console.log("\nAll checks passed.");
} catch (error) {
  console.error(`\n${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  for (const close of closing.toReversed()) await close();
}
