/** The version after this one, as far as its tables go: a copy of the sources with one migration more. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { openStore, openUnchangedStore } from "../../src/adapters/store/open.ts";
import { PROGRAM } from "../../src/program.ts";

type Opening = { openStore: typeof openStore; openUnchangedStore: typeof openUnchangedStore };

/** How it opens stores; `text` is the migration, for both. */
export async function nextVersion(t: TestContext, text: string): Promise<Opening> {
  const root = mkdtempSync(join(tmpdir(), "mandate-next-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const part of ["package.json", "src", "sql"])
    cpSync(join(PROGRAM, part), join(root, part), { recursive: true });
  symlinkSync(join(PROGRAM, "node_modules"), join(root, "node_modules"));
  for (const store of ["sqlite", "postgres"])
    writeFileSync(join(root, "sql", store, "0002_next.sql"), `${text};\n`);
  return import(join(root, "src/adapters/store/open.ts"));
}
