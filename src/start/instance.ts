/**
 * The name of this instance and its log, as the process starts: waited for where the hold of another process lapses,
 * refused where it is in use or was retired.
 */
import type { InstanceName, NameOptions } from "../adapters/audit/instance-name.ts";
import { NameInUse, takeName } from "../adapters/audit/instance-name.ts";
import type { JournalOptions, OpenJournal } from "../adapters/audit/journal.ts";
import { LogEnded, openJournal } from "../adapters/audit/journal.ts";
import type { Store } from "../adapters/store/store.ts";
import type { Config } from "../config/config.ts";
import { defined } from "../result.ts";
import type { Log } from "./log.ts";
import { StartRefused } from "./refused.ts";

export async function takeNameAtStart(
  { names }: Store,
  { instance: name, leaseSeconds }: Config["fixed"]["audit"],
  log: Log,
  stopped: AbortSignal | undefined,
): Promise<InstanceName> {
  const onWait = (message: string): void => log.tell({ level: "warning", event: "name_awaited", message });
  try {
    return await takeName(defined<NameOptions>({ names, name, leaseSeconds, onWait, stopped }));
  } catch (fault) {
    if (!(fault instanceof NameInUse)) throw fault;
    throw new StartRefused(`audit.instance: ${fault.message}. Give each instance a name of its own.`);
  }
}

export async function openJournalAtStart(options: JournalOptions): Promise<OpenJournal> {
  return openJournal(options).catch((fault) => {
    if (!(fault instanceof LogEnded)) throw fault;
    throw new StartRefused(`audit.instance: ${fault.message}. Give this instance another name.`);
  });
}
