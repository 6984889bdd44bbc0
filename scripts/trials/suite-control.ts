/** Negative control of the suite: servers that each break one rule, in which it has to find the broken clause. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMandate } from "../suite/adapters/mandate.ts";
import { AREAS } from "../suite/checks/all.ts";
import { FEATURES } from "../suite/parties.ts";
import { runSuite } from "../suite/runner.ts";
import { MUTATIONS, type Mutation } from "./suite-mutations.ts";

const ROOT = join(import.meta.dirname, "../..");
const PACKAGES = ["jose", "valibot", "postgres", "ipaddr.js"];
/** How many of the servers have to be found, of those that are asked. */
export const UNFOUND_MAX = 2;

/** The sources with this line changed, in a folder of their own. */
function mutantOf([file, from, to]: Mutation): string {
  const folder = mkdtempSync(join(tmpdir(), "suite-mutant-"));
  for (const name of ["src", "sql", "package.json", ...PACKAGES.map((one) => `node_modules/${one}`)])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  const path = join(folder, "src", file);
  const text = readFileSync(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} does not have this text once: ${from}`);
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
  return folder;
}

/** The clauses of the checks that failed at such a server; of `only` the checks about its clause, or all of them. */
export async function failedAt(mutation: Mutation, only: "clause" | "all"): Promise<string[]> {
  const folder = mutantOf(mutation);
  const [, , , clause] = mutation;
  const ids = AREAS.flatMap(({ checks }) =>
    checks.filter((one) => one.clause === clause).map(({ id }) => id),
  );
  try {
    const adapter = {
      server: "a mutant",
      offers: FEATURES,
      start: startMandate(join(folder, "src/main.ts")),
    };
    const { results } = await runSuite(adapter, only === "all" ? {} : { only: ids });
    const failed = results.filter(({ outcome }) => outcome === "failed");
    return [...new Set(failed.map((one) => one.clause))];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `npm run trials -- suite-control 40`: so many of the mutations, with the whole suite. */
export async function* controlSuite(count: number): AsyncIterable<string> {
  const unfound: string[] = [];
  const asked = MUTATIONS.slice(0, count);
  for (const mutation of asked) {
    const [file, from, , clause] = mutation;
    const failed = await failedAt(mutation, "all");
    if (!failed.includes(clause)) unfound.push(clause);
    yield `${failed.includes(clause) ? "found" : "NOT FOUND"} ${clause} (${failed.length} clauses failed) ${file}: ${from.split("\n")[0]}`;
  }
  if (unfound.length > UNFOUND_MAX)
    throw new Error(`${unfound.length} of ${asked.length} servers were not found`);
  yield `${asked.length - unfound.length} of ${asked.length} broken servers found`;
}
