/**
 * `npm run demo`: the whole story over real sockets, told step by step. Starts instances of its own on free ports;
 * `--against URL` plays the first part against one that `npm start` started. Ends non-zero when anything is not as it
 * says.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { tellOfFourServers } from "./demo/four-servers.ts";
import type { Stage } from "./demo/story.ts";
import { tellStory } from "./demo/story.ts";
import { tellOfTwoCompanies } from "./demo/two-companies.ts";
import { makeProfile } from "./dev-profile.ts";
import { startIdp } from "./idp.ts";
import { freePorts, startServer } from "./server-process.ts";

const { values } = parseArgs({ options: { against: { type: "string" } } });

/** What is to be ended again, last thing first. */
const closing: (() => unknown)[] = [];

async function stageAgainst(url: string): Promise<Stage> {
  const idp = await startIdp("data");
  closing.push(() => idp.close());
  return { folder: "data", issuer: url.replace(/\/$/, ""), idp, fresh: false };
}

async function stageAt(folder: string): Promise<Stage> {
  const [port = 0, idpPort = 0] = await freePorts(2);
  const { configFile, issuer } = await makeProfile(folder, { port, idpPort });
  const idp = await startIdp(folder);
  closing.push(() => idp.close());
  const server = await startServer(configFile);
  closing.push(() => server.stop());
  return { folder, issuer, idp, fresh: true };
}

async function play(): Promise<void> {
  if (values.against !== undefined) return tellStory(await stageAgainst(values.against));
  const parent = mkdtempSync(join(tmpdir(), "mandate-demo-"));
  closing.push(() => rmSync(parent, { recursive: true, force: true }));
  await tellStory(await stageAt(join(parent, "data")));
  await tellOfFourServers(parent, closing);
  await tellOfTwoCompanies(parent, closing);
}

try {
  await play();
  console.log("\nAll of it was as told.");
} catch (error) {
  console.error(`\n${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  for (const close of closing.toReversed()) await close();
}
