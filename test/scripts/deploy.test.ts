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
import { type TestContext, test } from "node:test";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { freePorts, launchServer } from "../../scripts/server-process.ts";
import { makeProduction } from "../../scripts/trials/production.ts";
import { INIT } from "../../src/cli/init/usage.ts";
import { init } from "../../src/cli/init.ts";
import { readGiven } from "../../src/cli/options.ts";
import { PROBE_METRICS } from "../../src/cli/probe.ts";
import { FAMILIES } from "../../src/http/metrics.ts";
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

test("image, page and npm start give V8 the same heap", () => {
  const flags = entrypoint().filter((one) => /^--max-(?:semi|old)-space-size=/.test(one));
  assert.equal(flags.length, 2);
  for (const text of [recipe("README.md"), readFileSync(join(ROOT, "package.json"), "utf8")]) {
    assert.ok(text.includes(`${flags.join(" ")} --permission --allow-net`));
  }
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

/** This machine has no user of this name. */
const ofRoot = (unit: string): string => unit.replaceAll("=mandate\n", "=root\n");

function assertAccepted(folder: string, names: readonly string[]): void {
  const named = names.map((name) => join(folder, name));
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...named], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr.split("\n").filter((line) => line.includes("mandate"))], [0, []], stderr);
}

test("systemd accepts the units, where it is", (t) => {
  const units = ["mandate.service", "mandate@.service"];
  for (const unit of units) assert.match(recipe(unit), /^ProtectSystem=strict$/m);
  if (!has(t, "systemd-analyze", "--version")) return;
  const folder = folderOf(t);
  // This machine has its Node elsewhere, perhaps at a path with a space.
  const node = join(folder, "node");
  symlinkSync(process.execPath, node);
  for (const unit of units)
    writeFileSync(join(folder, unit), ofRoot(recipe(unit).replace("/usr/bin/node", node)));
  assertAccepted(folder, ["mandate.service", "mandate@one.service"]);
});

test("STORE-D-23 init writes the unit of several instances from the recipe, with its paths, and systemd accepts it", async (t) => {
  const folder = folderOf(t);
  const [etc, lib, url] = ["e 5%", "lib", "url"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(url, "postgres://mandate@127.0.0.1/mandate");
  const words = [etc, "--data", lib, "--issuer", "https://as.example", "--store", url, "--instances", "2"];
  const given = readGiven(INIT, words);
  assert.ok(given.ok);
  assert.equal(await init(given.value, { print: () => undefined, printError: assert.fail }), 0);
  const written = readFileSync(join(etc, "systemd/mandate@.service"), "utf8");
  const unlike = (unit: string, other: string): readonly string[] =>
    unit.split("\n").filter((line) => !other.split("\n").includes(line));
  assert.deepEqual(
    unlike(recipe("mandate@.service"), written).map((line) => line.split("=")[0]),
    ["WorkingDirectory", "ExecStart", "StateDirectory", "StateDirectoryMode"],
  );
  const start = /^ExecStart=(.*)$/m.exec(written)?.[1] ?? "";
  const config = join(etc, "%i/config.json").replace("5%", "5%%");
  assert.ok(start.endsWith(` --config '${config}'`), start);
  assert.ok(start.includes(` --allow-fs-read=${url} `), start);
  assert.match(written, new RegExp(`^ReadWritePaths="${lib}/%i"$`, "m"));
  if (!has(t, "systemd-analyze", "--version")) return;
  const units = join(folder, "units");
  mkdirSync(units);
  for (const name of ["mandate@.service", "mandate.target"])
    writeFileSync(join(units, name), ofRoot(readFileSync(join(etc, "systemd", name), "utf8")));
  assertAccepted(units, ["mandate@one.service", "mandate.target"]);
});

/** The series of a text in PromQL, each with the names of the labels in its braces and behind its `by`. */
function seriesIn(expr: string): { name: string; labels: readonly string[] }[] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
  const found = [...expr.matchAll(/\b((?:mandate|process)_\w+|up)\b(?:\{([^}]*)\})?/g)];
  return found.map(([, name = "", inBraces = ""]) => {
    const labels = [...inBraces.matchAll(/(\w+)(?:=~|!=|!~|=)"/g)].map(([, label = ""]) => label);
    return { name, labels: [...labels, ...grouped] };
  });
}

/** What Prometheus itself adds. */
const ADDED = ["instance", "job", "le"];

function assertKnown(expr: string): void {
  const all = seriesIn(expr);
  const families = { ...FAMILIES, ...PROBE_METRICS };
  assert.ok(all.length > 0, `no metric in ${expr}`);
  for (const { name, labels } of all.filter((one) => one.name !== "up")) {
    const family = Object.entries<{ type: string; labels: readonly string[] }>(families).find(
      ([known, { type }]) => name === (type === "histogram" ? `${known}_bucket` : known),
    );
    assert.ok(family !== undefined, `${name} is no metric: ${expr}`);
    for (const label of labels)
      assert.ok([...family[1].labels, ...ADDED].includes(label), `${label} in ${expr}`);
  }
}

test("each alert is made of metrics and labels that there are, and has its part of the runbook", (t) => {
  const alerts = recipe("alerts.yaml").split("\n      - alert: ").slice(1);
  const names = alerts.map((text) => text.split("\n")[0] ?? "");
  assert.ok(alerts.length > 10);
  assert.equal(new Set(names).size, names.length);
  for (const [index, text] of alerts.entries()) {
    assertKnown(/^ +expr: (.*)$/m.exec(text)?.[1] ?? assert.fail(text));
    const { labels } = seriesIn(/^ +expr: (.*)$/m.exec(text)?.[1] ?? "")[0] ?? assert.fail();
    assert.match(text, /severity: (?:page|ticket)/);
    assert.ok(text.includes(`runbook: "RUNBOOK.md#${names[index]?.toLowerCase()}"`), text);
    for (const [, shown = ""] of text.matchAll(/\$labels\.(\w+)/g)) {
      const family =
        Object.entries({ ...FAMILIES, ...PROBE_METRICS }).find(([name]) => text.includes(name))?.[1].labels ??
        [];
      assert.ok([...family, ...ADDED, ...labels].includes(shown), `${shown} in ${text}`);
    }
  }
  const parts = recipe("RUNBOOK.md").split("\n## ").slice(1);
  assert.deepEqual(
    parts.map((text) => text.split("\n")[0]),
    names,
    "in the same order, and for each alert one",
  );
  for (const text of parts)
    assert.match(text, /^\w+\n\n\S.+\n\n1\. /, "what it means, then what to do first");
  if (!has(t, "promtool", "--version")) return;
  const { status, stderr } = spawnSync(
    "promtool",
    ["check", "rules", join(ROOT, "scripts/deploy/alerts.yaml")],
    {
      encoding: "utf8",
    },
  );
  assert.equal(status, 0, stderr);
});

test("each panel of the dashboard is made of metrics and labels that there are", () => {
  const { panels } = JSON.parse(recipe("dashboard.json"));
  assert.ok(panels.length > 20);
  for (const { targets } of panels) for (const { expr } of targets) assertKnown(expr);
});

test("a pod may have the heap that the container gives the server, and a third of that for all else", () => {
  const [, heap] = /--max-old-space-size=(\d+)/.exec(recipe("Containerfile")) ?? assert.fail();
  const [, limit] = /limits: \{ memory: (\d+)Mi \}/.exec(recipe("kubernetes.yaml")) ?? assert.fail();
  assert.ok(Number(limit) >= (4 / 3) * Number(heap), `${limit} MiB for a heap of ${heap}`);
});

test("kubectl reads the manifest, where it is", (t) => {
  const manifest = recipe("kubernetes.yaml");
  for (const line of ["readOnlyRootFilesystem: true", "runAsNonRoot: true", "path: /readyz"]) {
    assert.ok(manifest.includes(line), line);
  }
  if (!has(t, "kubectl", "version", "--client")) return;
  const folder = join(folderOf(t), "k");
  mkdirSync(folder);
  const files = ["kubernetes.yaml", "ingress.yaml", "pod-monitor.yaml"];
  for (const name of files) writeFileSync(join(folder, name), recipe(name));
  writeFileSync(join(folder, "kustomization.yaml"), `resources: [${files.join(", ")}]\n`);
  const { status, stdout, stderr } = spawnSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  // A mount inside of a read-only one cannot be made, so certificate and configuration are one volume.
  assert.equal(stdout.match(/mountPath: \/etc\/mandate/g)?.length, 1);
  const kinds = [...stdout.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind).sort();
  const wanted = ["Ingress", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service", "StatefulSet"];
  assert.deepEqual(kinds, wanted);
});
