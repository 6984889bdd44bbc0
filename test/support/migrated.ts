/** Stores on SQLite for single tests: migrated once for a process and copied, since migrations take two thirds of an opening. */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/adapters/store/open.ts";

let copies = 0;
let made: Promise<string> | undefined;

async function make(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "mandate-stores-"));
  process.once("exit", () => rmSync(folder, { recursive: true }));
  await (await openStore({ sqlite: join(folder, "migrated") })).close();
  return folder;
}

/** The path of a new store, without a row. */
export async function migratedFile(): Promise<string> {
  made ??= make();
  const folder = await made;
  const file = join(folder, String(copies++));
  copyFileSync(join(folder, "migrated"), file);
  return file;
}
