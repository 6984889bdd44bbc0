/** Names of instances on SQLite: for each a file with a lock, which ends with the process that holds it. */
import { err, ok } from "../../../result.ts";
import type { Holder, InstanceNames } from "../store.ts";
import { type Database, lockFile } from "./database.ts";

export function sqliteNames({ db, run, write }: Database): InstanceNames {
  // Links are resolved, because another process may have come to the file by another path.
  const file = db.location();
  const select = db.prepare(`select host, pid, since_ms as "sinceMs" from instance where log = ?`);
  const replace = db.prepare("replace into instance (log, host, pid, since_ms) values (?, ?, ?, ?)");
  const remove = db.prepare("delete from instance where log = ?");
  return {
    holder: async (name) => {
      const row = await run(() => select.get(name));
      return row === undefined ? undefined : ({ ...row } as Holder);
    },
    async take(name, { host, pid }) {
      // A database in memory belongs to its process alone.
      const lock = file === null ? undefined : lockFile(`${file}.${name}.lock`);
      if (lock === "taken") {
        const holder = (await run(() => select.get(name))) as Holder | undefined;
        return err({ ...holder });
      }
      try {
        await write(() => replace.run(name, host, pid, Date.now()));
      } catch (fault) {
        lock?.close();
        throw fault;
      }
      return ok({
        async release() {
          // The row is removed before the lock ends, because afterwards it may be that of the next process.
          try {
            await write(() => remove.run(name));
          } finally {
            lock?.close();
          }
        },
      });
    },
  };
}
