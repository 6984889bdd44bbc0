/** The register against a folder of ledgers: Markdown files whose tables have rows of id, level, on, requirement. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { NOT_BUILT } from "./capabilities.ts";
import { allClauses, ID, type Register, type Source } from "./register.ts";

/** Levels by id. † may stand at the level or in the requirement; ‡ says how the row was read, not what it binds. */
export function readLedger(text: string): Map<string, string> {
  const rows = [...text.matchAll(new RegExp(`^\\| (${ID}) \\| ([^|]+) \\|(.*)$`, "gm"))];
  return new Map(
    rows.map(([row, id = "", level = ""]) => {
      const bare = level.replaceAll(/[†‡]/g, "").trim();
      return [id, row.includes("†") ? `${bare}†` : bare];
    }),
  );
}

const documentOf = (id: string): string => id.replace(/-.*/, "");

/**
 * How many rows wait for which capability, the rows that the register has beyond the ledgers, which is no fault, and all
 * that differs, one line each.
 */
export function compareLedgers(
  register: Register,
  ledgers: Source[],
  notBuilt: ReadonlyMap<string, string> = NOT_BUILT,
) {
  const clauses = new Map(allClauses(register).map((clause) => [clause.id, clause]));
  const waiting = new Map<string, number>();
  const differences: string[] = [];
  const known = new Set<string>();
  for (const { file, text } of ledgers) {
    const name = basename(file, ".md");
    for (const [id, level] of readLedger(text)) {
      known.add(id);
      const ours = clauses.get(id)?.level;
      const capability = notBuilt.get(documentOf(id));
      if (ours === undefined && capability !== undefined) {
        waiting.set(capability, (waiting.get(capability) ?? 0) + 1);
      } else if (ours === undefined) {
        differences.push(`${id}: is in the ledger ${name}, not in the register`);
      } else if (ours !== level) {
        differences.push(`${id}: is ${level} in the ledger ${name}, ${ours} in the register`);
      }
    }
  }
  const alone: string[] = [];
  for (const { id, status } of clauses.values()) {
    const document = documentOf(id);
    // What we decide ourselves stands in the register first.
    const isOurs = status === "decision" || id.startsWith(`${document}-D-`);
    if (!known.has(id) && !isOurs) alone.push(id);
  }
  return {
    waiting: [...waiting].map(([capability, rows]) => `${capability} (${rows})`),
    alone,
    differences,
  };
}

export function loadLedgers(folder: string): Source[] {
  const files = globSync("*.md", { cwd: folder }).sort();
  return files.map((file) => ({ file, text: readFileSync(join(folder, file), "utf8") }));
}
