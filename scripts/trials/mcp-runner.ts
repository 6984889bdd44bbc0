/**
 * MCP's conformance runner for authorization servers: our metadata as MCP clients look for them, and a code with its
 * redemption, for which a user signs in and allows what the runner's client asks for.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DRAFT as DOCUMENTS } from "../../src/spec/cimd.ts";
import {
  type Asked,
  Browser,
  files,
  forPeople,
  locationOf,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  PUBLIC,
} from "../../test/support/people.ts";
import { startProvider, type TestProvider } from "../../test/support/provider.ts";
import { stop } from "../../test/support/stop.ts";
import { listenAt, makeWorld, type World } from "../../test/support/world.ts";
import { freePorts } from "../server-process.ts";

const RUNNER = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

const configurationAt = (
  issuer: string,
  port: number,
  callback: string,
  base: ReturnType<typeof forPeople>,
) => ({
  ...base,
  issuer,
  listen: listenAt(port),
  clients: {
    [PUBLIC]: { ...base.clients[PUBLIC], redirectUris: [callback] },
    [PRIVATE]: { ...base.clients[PRIVATE], redirectUris: [callback] },
  },
  clientMetadataDocuments: {},
  drafts: [...base.drafts, DOCUMENTS],
});

/** What a run of the runner says at the end, for a client that a user allows what the runner asks for. */
async function check(
  { folder, issuer, get }: World,
  provider: TestProvider,
  program: string,
  callback: number,
  client: readonly string[],
): Promise<string> {
  const asked = ["authorization", "--url", issuer, "--client-id", ...client, "--resource", NOTES];
  const runner = spawn(process.execPath, [program, ...asked, "--port", String(callback)], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, "tls/ca.pem") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: runner.stdout })) {
    lines.push(line);
    if (!line.startsWith(`${issuer}/authorize?`)) continue;
    const browser = new Browser({ get, issuer }, provider);
    const request: Asked = Object.fromEntries(new URL(line).searchParams);
    await fetch(locationOf(await browser.decide(await browser.review(request))));
  }
  return lines.filter((line) => /^[✓✗]/u.test(line)).join(", ");
}

/**
 * The last run is told and not judged: the runner sends no secret where the metadata list `none` beside other methods, so
 * that a client with a secret is refused.
 */
const PASSED =
  "✓ authorization-server-metadata-endpoint: 2 passed, 0 failed, ✓ authorization-code-grant: 1 passed, 0 failed";

export async function* runMcpRunner(): AsyncIterable<string> {
  const [port = 0, callback = 0] = await freePorts(2);
  const issuer = `https://localhost:${port}`;
  const provider = await startProvider();
  const back = `http://127.0.0.1:${callback}/callback`;
  const world = await makeWorld(configurationAt(issuer, port, back, forPeople(provider)), {
    files: files(provider),
  });
  try {
    const folder = join(world.folder, "runner");
    mkdirSync(folder);
    const words = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", RUNNER];
    const { status, stderr } = spawnSync("npm", words, { cwd: folder, encoding: "utf8" });
    if (status !== 0) throw new Error(`npm ended with ${status}: ${stderr.slice(-800)}`);
    const program = join(folder, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
    const run = (...client: string[]) => check({ ...world, issuer }, provider, program, callback, client);
    const told = await run(PUBLIC);
    if (told !== PASSED) throw new Error(`${RUNNER}: ${told}`);
    yield `${RUNNER}, a public client: ${told}`;
    yield `${RUNNER}, a client with a secret: ${await run(PRIVATE, "--client-secret", PRIVATE_SECRET)}`;
  } finally {
    await stop(world, provider);
  }
}
