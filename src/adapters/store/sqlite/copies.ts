/** A copy of a database while it is in use, with the mark that tells it from the original. */
import { closeSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../../../ports.ts";
import type { Store } from "../store.ts";
import type { Database } from "./database.ts";

export const sqliteCopies = ({ db, run }: Database): Required<Pick<Store, "copyTo">> => ({
  async copyTo(file, atMs) {
    // The file is made here, because SQLite would make one that others can read; it fills an empty file.
    closeSync(openSync(file, "wx", 0o600));
    try {
      await run(() => db.prepare("vacuum into ?").run(file));
      markCopy(file, atMs);
    } catch (fault) {
      rmSync(file, { force: true });
      throw fault;
    }
  },
});

/**
 * Marks the copy, whose pages are checked before, because a copy that cannot be read is none. It is durable when this
 * returns.
 */
function markCopy(file: string, atMs: number): void {
  using copy = new DatabaseSync(file);
  const found = copy.prepare("pragma integrity_check(1)").get()?.integrity_check;
  if (found !== "ok") throw new StoreUnavailable(`${file}: the copy is damaged (${String(found)})`);
  copy.exec("pragma synchronous = full");
  copy.prepare("replace into restored (id, marked_at_ms) values (1, ?)").run(atMs);
}
