/** The recipes of scripts/deploy: the server starts with their arguments, and tools that are there accept them. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { freePorts, launchServer } from "../../scripts/server-process.ts";
import { makeProduction } from "../../scripts/trials/production.ts";
import { INIT } from "../../src/cli/init/usage.ts";
import { init } from "../../src/cli/init.ts";
import { readGiven } from "../../src/cli/options.ts";
import { until } from "../support/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const recipe = (name: string): string => readFileSync(join(ROOT, "scripts/deploy", name), "utf8");

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "mandate-deploy-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The arguments of the image. */
const entrypoint = (): string[] =>
  JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(recipe("Containerfile"))?.[1] ?? assert.fail("no ENTRYPOINT"));

const argumentsOf = (unit: string): string[] =>
  (/^ExecStart=\S+ (.*)$/m.exec(recipe(unit))?.[1] ?? assert.fail("no ExecStart")).split(" ");

test("image and units start the server with the same arguments", () => {
  const [node, ...ofImage] = entrypoint();
  assert.equal(node, "node");
  assert.deepEqual(argumentsOf("mandate.service"), ofImage);
  const ofTemplate = argumentsOf("mandate@.service").map((one) => one.replaceAll("/%i", ""));
  assert.deepEqual(ofTemplate, ofImage);
});

test("the image is made of what there is, and its user is not root", () => {
  const copied = [...recipe("Containerfile").matchAll(/^COPY (?!--from)(.*) \S+$/gm)];
  const names = copied.flatMap(([, list = ""]) => list.split(" "));
  assert.deepEqual(names.sort(), ["package-lock.json", "package.json", "package.json", "sql", "src"]);
  for (const name of names) assert.ok(existsSync(join(ROOT, name)), name);
  assert.match(recipe("Containerfile"), /^USER 65532:65532$/m);
});

test("a configuration of init for these places is served with these arguments, and written to nowhere else", async (t) => {
  const folder = folderOf(t);
  const [etc, lib] = [join(folder, "etc"), join(folder, "lib")];
  const [port = 0] = await freePorts(1);
  const words = [etc, "--data", lib, "--issuer", `https://localhost:${port}`];
  const given = readGiven(INIT, words);
  assert.ok(given.ok);
  assert.equal(await init(given.value, { print: () => undefined, printError: assert.fail }), 0);
  const { keyPem, certPem } = await issueServerCertificate(await makeAuthority("any"), ["localhost"]);
  writeFileSync(join(etc, "tls/key.pem"), keyPem);
  writeFileSync(join(etc, "tls/cert.pem"), certPem);
  const [, ...ofImage] = entrypoint();
  const mapped = ofImage.map((one) =>
    one.replace("/srv/mandate", ROOT).replace("/etc/mandate", etc).replace("/var/lib/mandate", lib),
  );
  const child = spawn(process.execPath, mapped, { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  const exited = once(child, "exit");
  const { operations } = JSON.parse(readFileSync(join(etc, "config.json"), "utf8"));
  const ready = async (): Promise<boolean> => {
    const asked = get({ port: operations.port, path: "/readyz", host: "127.0.0.1" });
    const answered = await once(asked, "response").catch(() => undefined);
    answered?.[0].resume();
    return answered?.[0].statusCode === 200;
  };
  t.after(async () => {
    child.kill("SIGTERM");
    // Two signals at once are one, and the server serves on for its balancer until the second.
    await until(async () => !(await ready()), "the server is not ready");
    child.kill("SIGTERM");
    await exited;
  });
  await until(ready, "the server is ready");
  for (const name of ["data/mandate.sqlite", "witness/checkpoints.jsonl"]) {
    assert.ok(existsSync(join(lib, name)), name);
    assert.ok(!existsSync(join(etc, name)), name);
  }
});

test("what the units wait for before a reload is that SIGHUP does not end the start", async (t) => {
  const waits = ["mandate.service", "mandate@.service"].map(
    (unit) => /^ExecStartPost=\/bin\/sh -c '(.*)'$/m.exec(recipe(unit))?.[1] ?? assert.fail("no wait"),
  );
  assert.equal(waits[0], waits[1]);
  if (!existsSync("/proc/self/status")) return t.diagnostic("there is no /proc here, which the wait reads");
  const production = await makeProduction();
  t.after(() => production.remove());
  for (let round = 0; round < 3; round++) {
    const { child, lines } = launchServer(production.configFile);
    const exited = once(child, "exit");
    const env = { ...process.env, MAINPID: String(child.pid) };
    await once(spawn("sh", ["-c", String(waits[0]).replaceAll("$$", "$")], { env }), "exit");
    child.kill("SIGHUP");
    await until(() => lines.some((line) => line.includes('"event":"reloaded"')), "the reload is done");
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
  }
});

/** Whether the tool is on this machine; without it the report says that nothing was checked by it. */
function has(t: TestContext, tool: string, ...words: string[]): boolean {
  const { status } = spawnSync(tool, words, { stdio: "ignore" });
  if (status !== 0) t.diagnostic(`${tool} is not here, so that it checked nothing`);
  return status === 0;
}

test("systemd accepts the units, where it is", (t) => {
  const units = ["mandate.service", "mandate@.service"];
  for (const unit of units) assert.match(recipe(unit), /^ProtectSystem=strict$/m);
  if (!has(t, "systemd-analyze", "--version")) return;
  const folder = folderOf(t);
  // This machine has its Node elsewhere, perhaps at a path with a space, and not this user.
  const node = join(folder, "node");
  symlinkSync(process.execPath, node);
  for (const unit of units) {
    const text = recipe(unit).replace("/usr/bin/node", node).replaceAll("=mandate\n", "=root\n");
    writeFileSync(join(folder, unit), text);
  }
  const named = [join(folder, "mandate.service"), join(folder, "mandate@one.service")];
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...named], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr.split("\n").filter((line) => line.includes("mandate"))], [0, []], stderr);
});

test("kubectl reads the manifest, where it is", (t) => {
  const manifest = recipe("kubernetes.yaml");
  for (const line of ["readOnlyRootFilesystem: true", "runAsNonRoot: true", "path: /readyz"]) {
    assert.ok(manifest.includes(line), line);
  }
  if (!has(t, "kubectl", "version", "--client")) return;
  const folder = join(folderOf(t), "k");
  mkdirSync(folder);
  writeFileSync(join(folder, "kubernetes.yaml"), manifest);
  writeFileSync(join(folder, "kustomization.yaml"), "resources: [kubernetes.yaml]\n");
  const { status, stdout, stderr } = spawnSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  // A mount inside of a read-only one cannot be made, so certificate and configuration are one volume.
  assert.equal(stdout.match(/mountPath: \/etc\/mandate/g)?.length, 1);
  const kinds = [...stdout.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind).sort();
  assert.deepEqual(kinds, ["NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"]);
});
