/** The suite at other servers, where their tools are present; what it finds is told, and is no failure of the trial. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missing } from "./spring.ts";

const SUITE = join(import.meta.dirname, "../suite");
export const OIDC_PROVIDER_VERSION = "9.13.3";
export const KEYCLOAK_VERSION = "26.7.3";

function run(folder: string, program: string, ...words: string[]): void {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${`${stdout}${stderr}`.slice(-800)}`);
}

/** The counts of a run, and the clauses of what failed. */
function ask(folder: string, adapter: string, environment: NodeJS.ProcessEnv): string {
  const json = join(folder, "report.json");
  const words = [join(SUITE, "run.ts"), "--adapter", join(SUITE, "adapters", adapter), "--json", json];
  const { status, stderr } = spawnSync(process.execPath, words, {
    ...{ encoding: "utf8", maxBuffer: 2 ** 26 },
    env: { ...process.env, ...environment },
  });
  if (status !== 0 && status !== 1) throw new Error(`${adapter}: ${stderr.slice(-800)}`);
  const { server, counts, results } = JSON.parse(readFileSync(json, "utf8"));
  const failed = results.filter(({ outcome }: { outcome: string }) => outcome === "failed");
  const clauses = failed.map(({ id, clause }: { id: string; clause: string }) => `${clause} (${id})`);
  const told = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`);
  return `${server}: ${told.join(", ")}${clauses.length > 0 ? `: ${clauses.join(", ")}` : ""}`;
}

/** The folder of a program beside the adapters, in the temporary folder. */
function copyOf(folder: string, name: string): string {
  const to = join(folder, name);
  cpSync(join(SUITE, "adapters", name), to, { recursive: true });
  return to;
}

function makeSpring(folder: string): string {
  const home = copyOf(folder, "spring");
  run(home, "mvn", "-q", "-B", "package");
  return join(home, "target/server-1.jar");
}

function makeZitadel(folder: string): string {
  const home = copyOf(folder, "zitadel");
  run(home, "go", "mod", "tidy");
  run(home, "go", "build", "-o", "zitadel", ".");
  return join(home, "zitadel");
}

function makeKeycloak(folder: string): string {
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${KEYCLOAK_VERSION}:zip`;
  const copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
  run(folder, "mvn", "-q", "-B", copy, artifact, `-DoutputDirectory=${folder}`);
  run(folder, "unzip", "-q", `keycloak-quarkus-dist-${KEYCLOAK_VERSION}.zip`);
  return join(folder, `keycloak-${KEYCLOAK_VERSION}`);
}

function makeProvider(folder: string): string {
  const words = ["install", "--prefix", folder, "--ignore-scripts"];
  run(folder, "npm", ...words, `oidc-provider@${OIDC_PROVIDER_VERSION}`);
  return join(folder, "node_modules/oidc-provider/lib/index.js");
}

/** The adapter, the variable that names what it starts, the tools that make it, and how; further settings, a run each. */
const SERVERS = [
  ["oidc-provider.ts", "OIDC_PROVIDER", ["npm"], makeProvider, [{ FORMAT: "jwt" }, { FORMAT: "opaque" }]],
  ["spring.ts", "SPRING", ["mvn", "java", "keytool"], makeSpring, [{}]],
  ["zitadel.ts", "ZITADEL", ["go"], makeZitadel, [{}]],
  ["keycloak.ts", "KEYCLOAK", ["mvn", "java", "unzip"], makeKeycloak, [{}]],
] as const;

export async function* askServers(): AsyncIterable<string> {
  const folder = mkdtempSync(join(tmpdir(), "suite-servers-"));
  try {
    for (const [adapter, variable, tools, make, runs] of SERVERS) {
      const absent = missing(...tools);
      if (absent.length > 0) {
        yield `${adapter}: not run here, since there is no ${absent.join(", no ")}`;
        continue;
      }
      const made = make(folder);
      for (const settings of runs) yield ask(folder, adapter, { [variable]: made, ...settings });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
