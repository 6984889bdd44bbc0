/** The name of this instance, as the process starts it: waited for where it lapses, and refused where it is in use. */
import type { InstanceName, NameOptions } from "../adapters/audit/instance-name.ts";
import { NameInUse, takeName } from "../adapters/audit/instance-name.ts";
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
