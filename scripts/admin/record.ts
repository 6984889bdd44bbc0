/** What is done on the host goes into a log of its own, so that it needs no part in the log of a running server. */
import type { JournalEntry } from "../../src/adapters/audit/journal.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock, random } from "../../src/adapters/crypto/system.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { LogConflict } from "../../src/adapters/store/store.ts";
import { StoreUnavailable } from "../../src/ports.ts";
import type { Settings } from "../../src/settings/settings.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

export const ADMIN_LOG = "admin";

/** What a command works with. */
export type Admin = {
  settings: Settings;
  store: Store;
  say: (line: string) => void;
  complain: (line: string) => void;
};

const ATTEMPTS_MAX = 3;

/** Who typed it: the host knows no more than the user that the command runs as. */
export function describeOperator(): JsonObject {
  return process.getuid === undefined ? {} : { uid: process.getuid() };
}

/** AUDIT-D-4 */
export function describePolicy({ policy }: Settings): { digest: string } {
  return { digest: policy.digest };
}

/**
 * AUDIT-D-1: event and change in one step, durable when this returns. False if the change was not possible.
 * A command that comes at the same moment may take our place in the log: nothing was written then.
 */
export async function recordAsAdmin({ log }: Pick<Store, "log">, entry: JournalEntry): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const taken = new AbortController();
    try {
      const onFatal = (): void => taken.abort();
      const journal = await openJournal({ log: ADMIN_LOG, store: log, clock, random, onFatal });
      const recorded = await journal.record(entry);
      await journal.close();
      return recorded.ok;
    } catch (fault) {
      if (taken.signal.aborted || fault instanceof LogConflict) continue;
      if (!(fault instanceof StoreUnavailable)) throw fault;
      throw new StoreUnavailable(`${fault.message}: look whether it was recorded before you repeat it`);
    }
  }
  throw new StoreUnavailable("other admin commands were quicker, and nothing was written: try again");
}
