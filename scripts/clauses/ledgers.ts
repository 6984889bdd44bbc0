/** The register against a folder of ledgers: Markdown files whose tables have rows of id, level, on, requirement. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Register, Source } from "./register.ts";
import { allClauses, ID } from "./register.ts";

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

/** Ledgers of which the register has no row, and all other differences, one line each. */
export function compareLedgers(register: Register, ledgers: Source[]) {
  const clauses = new Map(allClauses(register).map((clause) => [clause.id, clause]));
  const read = ledgers
    .map(({ file, text }) => ({ name: basename(file, ".md"), rows: readLedger(text) }))
    .filter(({ rows }) => rows.size > 0);
  const isNew = ({ rows }: { rows: Map<string, string> }) => ![...rows.keys()].some((id) => clauses.has(id));
  const known = new Set(read.flatMap(({ rows }) => [...rows.keys()]));
  const differences = read
    .filter((ledger) => !isNew(ledger))
    .flatMap(({ name, rows }) =>
      [...rows].flatMap(([id, level]) => {
        const ours = clauses.get(id)?.level;
        if (ours === undefined) return [`${id}: is in the ledger ${name}, not in the register`];
        return ours === level ? [] : [`${id}: is ${level} in the ledger ${name}, ${ours} in the register`];
      }),
    );
  for (const { id, status } of clauses.values()) {
    // A decision is ours and may stand in the register alone.
    if (!known.has(id) && status !== "decision") differences.push(`${id}: is in the register, in no ledger`);
  }
  return { missing: read.filter(isNew).map(({ name, rows }) => `${name} (${rows.size})`), differences };
}

export function loadLedgers(folder: string): Source[] {
  const files = globSync("*.md", { cwd: folder }).sort();
  return files.map((file) => ({ file, text: readFileSync(join(folder, file), "utf8") }));
}
