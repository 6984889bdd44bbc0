/** `mandate backup`: a copy of the embedded database while the server runs, and the mark of a copy that others made. */
import { existsSync } from "node:fs";
import { type InstanceName, NameInUse, takeName } from "../adapters/audit/instance-name.ts";
import { clock } from "../adapters/clock.ts";
import { EXIT } from "../limits/process.ts";
import { LEASE_SECONDS } from "../limits/store.ts";
import type { Result } from "../result.ts";
import { ADMIN_LOG, recordAccess } from "./admin-log.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";

export function backupCommand(given: CommandArguments): Result<Command, string> {
  const [file = ""] = given.args;
  return onStore(given, (admin) => (given.form === "" ? copyStore(admin, file) : markStore(admin)));
}

async function copyStore(admin: Admin, file: string): Promise<number> {
  const { store, print, printError } = admin;
  if (store.copyTo === undefined) {
    printError(
      "The store is PostgreSQL, which has tools of its own: pg_dump --format=custom --file=FILE URL",
    );
    printError(
      'To restore: pg_restore into an empty database, then "mandate backup mark-restored", then start.',
    );
    return EXIT.refused;
  }
  if (existsSync(file)) {
    printError(`${file} exists, and is not overwritten: give another name`);
    return EXIT.refused;
  }
  // AUDIT-D-6: the backup is recorded before it is made, so that the copy holds the record too.
  await recordAccess(admin, { command: "backup", file });
  await store.copyTo(file, clock.nowMs());
  print(`${file} is a copy of the store as it is now; only this user can read it.`);
  print(
    "Keep it apart from the key-encryption key (keys.encryptionKey): the two together hold every secret of the server.",
  );
  print("The first start on it ends every token that was issued, and answers no request for some minutes.");
  return EXIT.done;
}

/** Takes the name of every instance first, because a server that runs on the store would not notice the mark. */
async function markStore(admin: Admin): Promise<number> {
  const { store, print, printError } = admin;
  const held: InstanceName[] = [];
  try {
    for (const name of (await store.log.logs()).filter((log) => log !== ADMIN_LOG)) {
      held.push(await takeName({ names: store.names, name, leaseSeconds: LEASE_SECONDS, onWait: print }));
    }
    await recordAccess(admin, { command: "backup mark-restored" });
    await store.restored.set(clock.nowMs());
  } catch (fault) {
    if (!(fault instanceof NameInUse)) throw fault;
    printError(`Not marked: ${fault.message}. Stop every server on this store first.`);
    return EXIT.refused;
  } finally {
    for (const name of held) await name.close();
  }
  print(
    "The store is marked as a restored copy. The next start on it ends every token that was issued, and answers no",
  );
  print("request for some minutes.");
  return EXIT.done;
}
