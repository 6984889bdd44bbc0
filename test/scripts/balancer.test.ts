/** A balancer that passes TLS through: what reaches the server, what its log says of the client, and that the recipes do it. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts, type ServerProcess, startServer } from "../../scripts/server-process.ts";
import { makeProduction, type Production } from "../../scripts/trials/production.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";

const DEPLOY = join(import.meta.dirname, "../../scripts/deploy");
const HERE = "127.0.0.1";
/** Linux has all of 127.0.0.0/8 on loopback; another system gives the balancer the address of the client. */
const BALANCER = process.platform === "linux" ? "127.0.0.2" : HERE;

let production: Production;
let server: ServerProcess;
let operations: number;
before(async () => {
  [operations = 0] = await freePorts(1);
  production = await makeProduction({ operations: { host: HERE, port: operations } });
  server = await startServer(production.configFile);
});
after(() =>
  stop(
    () => server?.stop(),
    () => production?.remove(),
  ),
);

/** Copies bytes both ways, and reads none of them; `first` is sent before the client's. */
async function passThrough(t: TestContext, first = ""): Promise<number> {
  const balancer: Server = createServer((client) => {
    const behind = connect({ host: HERE, port: server.port, localAddress: BALANCER });
    for (const [one, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
    behind.write(first);
    client.pipe(behind).pipe(client);
  });
  balancer.listen(0, HERE);
  await once(balancer, "listening");
  t.after(() => void balancer.close());
  return (balancer.address() as AddressInfo).port;
}

/** What the log says of the requests from here on. */
const requestsAfter = (line: number): readonly Record<string, unknown>[] =>
  server.lines
    .slice(line)
    .map((one) => JSON.parse(one))
    .filter(({ event }) => event === "request");

test("through a balancer the handshake is the server's own, and the log has the address of the balancer", async (t) => {
  const seen = server.lines.length;
  // The client trusts the authority of the server alone, and no other one ends its TLS.
  assert.equal((await production.ask(await passThrough(t))).status, 200);
  await until(() => requestsAfter(seen).length > 0, "the request is logged");
  assert.deepEqual(
    requestsAfter(seen).map(({ address }) => address),
    [BALANCER],
  );
});

test("a PROXY header before the handshake is no TLS: the connection ends, and nothing is answered or logged as a request", async (t) => {
  const seen = server.lines.length;
  const port = await passThrough(t, `PROXY TCP4 192.0.2.1 ${HERE} 50000 443\r\n`);
  await assert.rejects(production.ask(port), /SSL|ECONNRESET|socket hang up|disconnected/);
  assert.equal((await production.ask(server.port)).status, 200, "others are served");
  await until(() => requestsAfter(seen).length > 0, "the second request is logged");
  assert.equal(requestsAfter(seen).length, 1);
});

/** Each with its program, the word for its version, the words that run it in front, and how long it takes to look at /readyz. */
const recipes: readonly (readonly [
  file: string,
  program: string,
  version: string,
  run: (file: string, folder: string) => string[],
  looksAfterMs: number,
])[] = [
  ["haproxy.cfg", "haproxy", "-v", (file) => ["-db", "-f", file], 1_500],
  [
    "nginx.conf",
    "nginx",
    "-v",
    (file, folder) => ["-p", folder, "-g", "daemon off; error_log stderr;", "-c", file],
    0,
  ],
];
for (const [name, program, version, run, looksAfterMs] of recipes) {
  test(`the recipe ${name} passes TLS through, where ${program} is`, async (t) => {
    const recipe = readFileSync(join(DEPLOY, name), "utf8");
    assert.doesNotMatch(recipe.replaceAll(/#.*$/gm, ""), /send-proxy|proxy_protocol|ssl/);
    if (spawnSync(program, [version], { stdio: "ignore" }).status !== 0) {
      return t.diagnostic(`${program} is not here, so that the recipe was not run`);
    }
    const folder = mkdtempSync(join(tmpdir(), "mandate-balancer-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const [port = 0] = await freePorts(1);
    const file = join(folder, name);
    // nginx of a distribution has its module for streams in a file of its own.
    const module = process.env.MANDATE_NGINX_STREAM;
    const local = recipe
      .replace(/192\.0\.2\.11:8443/, `${HERE}:${server.port}`)
      .replace(/^.*192\.0\.2\.12.*\n/m, "")
      .replace(/port 9090/, `port ${operations}`)
      .replace("bind :443", `bind ${HERE}:${port}`)
      .replace("listen 443", `listen ${HERE}:${port}`)
      .replace(
        /^worker_processes/m,
        `pid ${folder}/pid;\n${module === undefined ? "" : `load_module ${module};\n`}worker_processes`,
      );
    writeFileSync(file, local);
    const tried =
      program === "nginx"
        ? spawnSync(program, ["-t", "-p", folder, "-c", file], { encoding: "utf8" })
        : undefined;
    if (/unknown directive "stream"/.test(tried?.stderr ?? "")) {
      return t.diagnostic("nginx is here without its module for streams, so that the recipe was not run");
    }
    const child = spawn(program, run(file, folder), { stdio: ["ignore", "ignore", "pipe"] });
    const exited = once(child, "exit");
    t.after(async () => {
      child.kill("SIGTERM");
      await exited;
    });
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
    });
    const answers = async (): Promise<boolean> => {
      assert.equal(child.exitCode, null, said);
      return production.ask(port).then(
        ({ status }) => status === 200,
        () => false,
      );
    };
    await until(answers, `${program} passes a request on: ${said}`);
    // It has looked at /readyz by then, if the recipe says so, and found the server ready.
    await sleep(looksAfterMs);
    assert.ok(await answers(), said);
    assert.doesNotMatch(said, /is DOWN/);
  });
}
