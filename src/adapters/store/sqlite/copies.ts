/** A copy of a database while it is in use, and the mark that tells a copy from the original. */
import { closeSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../../../ports.ts";
import type { RestoredMark, Store } from "../store.ts";
import type { Database } from "./database.ts";

const MARK = "replace into restored (id, marked_at_ms) values (1, ?)";

export function sqliteCopies({ db, run, write }: Database): Required<Pick<Store, "restored" | "copyTo">> {
  const select = db.prepare(`select marked_at_ms as "atMs" from restored`);
  const replace = db.prepare(MARK);
  const remove = db.prepare("delete from restored");
  const restored: RestoredMark = {
    async find() {
      const row = await run(() => select.get());
      return row === undefined ? undefined : Number(row.atMs);
    },
    set: async (atMs) => void (await write(() => replace.run(atMs))),
    clear: async () => void (await write(() => remove.run())),
  };
  return {
    restored,
    async copyTo(file, atMs) {
      // Made here, because SQLite would make it readable by others; it fills an empty file.
      closeSync(openSync(file, "wx", 0o600));
      try {
        await run(() => db.prepare("vacuum into ?").run(file));
        markCopy(file, atMs);
      } catch (fault) {
        rmSync(file, { force: true });
        throw fault;
      }
    },
  };
}

/** Its pages are looked through first: a copy that cannot be read is none. Durable when this returns. */
function markCopy(file: string, atMs: number): void {
  using copy = new DatabaseSync(file);
  const found = copy.prepare("pragma integrity_check(1)").get()?.integrity_check;
  if (found !== "ok") throw new StoreUnavailable(`${file}: the copy is damaged (${String(found)})`);
  copy.exec("pragma synchronous = full");
  copy.prepare(MARK).run(atMs);
}
