/** The suite at other servers, where their tools are present; what it finds is told, and is no failure of the trial. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missing } from "./spring.ts";

const SUITE = join(import.meta.dirname, "../suite");
export const OIDC_PROVIDER_VERSION = "9.13.3";
export const KEYCLOAK_VERSION = "26.7.3";

function run(folder: string, program: string, ...words: string[]): void {
  const { status, stderr } = spawnSync(program, words, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr.slice(-800)}`);
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
  const clauses = failed.map(({ clause }: { clause: string }) => clause);
  const told = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`);
  return `${server}: ${told.join(", ")}${clauses.length > 0 ? `: ${clauses.join(" ")}` : ""}`;
}

export async function* askServers(): AsyncIterable<string> {
  const folder = mkdtempSync(join(tmpdir(), "suite-servers-"));
  try {
    run(
      folder,
      "npm",
      "install",
      "--prefix",
      folder,
      "--ignore-scripts",
      `oidc-provider@${OIDC_PROVIDER_VERSION}`,
    );
    const main = join(folder, "node_modules/oidc-provider/lib/index.js");
    for (const format of ["jwt", "opaque"])
      yield ask(folder, "oidc-provider.ts", { OIDC_PROVIDER: main, FORMAT: format });
    const absent = missing("mvn", "java", "unzip");
    if (absent.length > 0) {
      yield `Keycloak: not asked, since there is no ${absent.join(", ")}`;
      return;
    }
    const zip = `keycloak-quarkus-dist-${KEYCLOAK_VERSION}.zip`;
    const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${KEYCLOAK_VERSION}:zip`;
    const copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
    run(folder, "mvn", "-q", "-B", copy, artifact, `-DoutputDirectory=${folder}`);
    run(folder, "unzip", "-q", zip);
    yield ask(folder, "keycloak.ts", { KEYCLOAK: join(folder, `keycloak-${KEYCLOAK_VERSION}`) });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
