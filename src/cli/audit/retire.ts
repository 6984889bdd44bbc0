/** `mandate audit retire`: ends the log of an instance that is gone for good (AUDIT-D-12). */
import { type InstanceName, NameInUse, takeName } from "../../adapters/audit/instance-name.ts";
import { LogEnded, openJournal } from "../../adapters/audit/journal.ts";
import { clock } from "../../adapters/clock.ts";
import { random } from "../../adapters/crypto/random.ts";
import { EXIT } from "../../limits/process.ts";
import { LEASE_SECONDS } from "../../limits/store.ts";
import { StoreUnavailable } from "../../ports.ts";
import { ADMIN_LOG, operatorEvent, recordAsAdmin } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { word } from "../text.ts";

export async function retireLog(admin: Admin, log: string): Promise<number> {
  const { store, print, printError } = admin;
  if (log === ADMIN_LOG) {
    printError(`The log ${word(ADMIN_LOG)} is that of the commands and cannot be retired.`);
    return EXIT.refused;
  }
  const logs = await store.log.logs();
  if (!logs.includes(log)) {
    printError(`There is no log ${word(log)}. Existing logs: ${logs.map(word).join(" ")}`);
    return EXIT.refused;
  }
  let name: InstanceName | undefined;
  try {
    // Once this command has the name, nothing else can write the log, so that its last record stays the last one.
    name = await takeName({ names: store.names, name: log, leaseSeconds: LEASE_SECONDS, onWait: print });
    await endLog(admin, log, name);
  } catch (fault) {
    if (!(fault instanceof NameInUse || fault instanceof LogEnded)) throw fault;
    const remedy =
      fault instanceof NameInUse ? ". Stop it first; only an instance that is gone is retired" : "";
    printError(`Not retired: ${fault.message}${remedy}.`);
    return EXIT.refused;
  } finally {
    await name?.close();
  }
  print(`Retired: ${word(log)}. Its log has ended, and no instance can start under this name.`);
  return EXIT.done;
}

/** Writes to the log of the commands first, so that the command can be repeated when the second step fails. */
async function endLog({ settings, store }: Admin, log: string, { ensure }: InstanceName): Promise<void> {
  // The journal then refuses the record by an exception, so nothing else is to be done here.
  const onFatal = (): void => {};
  const journal = await openJournal({ log, store: store.log, clock, random, onFatal, mayWrite: ensure });
  const head = await store.log.head(log);
  const detail = { log, tree_size: (head?.seq ?? -1) + 1, head: head?.hash ?? "" };
  await recordAsAdmin(store, { event: operatorEvent(settings, "log.retired", detail) });
  try {
    await journal.record({ event: { type: "log.ended", outcome: "allow", reason: "by_operator" } });
  } catch (fault) {
    if (!(fault instanceof StoreUnavailable)) throw fault;
    throw new StoreUnavailable(`${fault.message}: the log has perhaps not ended, run the command again`);
  }
  await journal.close();
}
