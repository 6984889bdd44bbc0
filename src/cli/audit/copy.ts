/**
 * `mandate audit … --from FILE`: reads the trail from a logical copy of the database or a standby, and records the look in
 * the store of the configuration (AUDIT-D-17).
 */
import { openCopy } from "../../adapters/store/open.ts";
import type { Store } from "../../adapters/store/store.ts";
import { readCopy } from "../../config/store.ts";
import { COPY_POLL_MS, COPY_WAIT_MS } from "../../limits/audit.ts";
import { EXIT } from "../../limits/process.ts";
import { StoreUnavailable } from "../../ports.ts";
import type { Result } from "../../result.ts";
import type { StorePlace } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { ADMIN_LOG, recordTrailAccess } from "../admin-log.ts";
import type { Command, Viewer } from "../command.ts";
import type { CommandArguments } from "../options.ts";
import { word } from "../text.ts";

/** A command on the trail. */
export type Auditor = Viewer & {
  copy?: {
    readonly store: Store;
    /** Where it is, without the password. */
    readonly at: string;
    /** How it compares with the store. */
    readonly says: string;
    /** It has what the store has not. */
    readonly differs: boolean;
  };
};

/** Where the trail is read. */
export const trailOf = ({ store, copy }: Auditor): Store => copy?.store ?? store;

/** AUDIT-D-6: recorded before anything is printed; then it is told what was looked at. */
export async function recordLook(
  auditor: Auditor,
  detail: JsonObject,
  tell = auditor.printError,
): Promise<void> {
  const { copy } = auditor;
  await recordTrailAccess(auditor.store, copy === undefined ? detail : { ...detail, from: copy.at });
  if (copy !== undefined) (copy.differs ? auditor.printError : tell)(copy.says);
}

type OnCopy<On> = (on: On & Pick<Auditor, "copy">) => Promise<number>;
type OpenedBy<On> = (
  given: CommandArguments,
  run: (on: On) => Promise<number>,
  whenAway?: string,
) => Result<Command, never>;

/** A command on the trail of the store, or of the copy that `--from` names; `opened` is what else it needs. */
export function onTrail<On extends Viewer>(
  given: CommandArguments,
  opened: OpenedBy<On>,
  run: OnCopy<On>,
): Result<Command, never> {
  const file = given.one("from");
  if (file === undefined) return opened(given, run);
  const whenAway =
    "A look at the copy is recorded in the store of the configuration, which is not available: nothing was read.";
  return opened(given, (on) => runOnCopy(on, file, run), whenAway);
}

async function runOnCopy<On extends Viewer>(admin: On, file: string, run: OnCopy<On>): Promise<number> {
  const { place, problems, warnings } = readCopy(file);
  for (const text of [...problems, ...warnings]) admin.printError(`--from: ${text}`);
  if (place === undefined) return EXIT.unusable;
  const at = nameOf(place);
  const opened = await openCopy(place).catch((fault: unknown) => {
    if (!(fault instanceof StoreUnavailable)) throw fault;
    admin.printError(`--from: ${at}: ${fault.message}`);
  });
  if (opened === undefined) return EXIT.unavailable;
  try {
    return await run({ ...admin, copy: { store: opened, at, ...(await compare(at, opened, admin.store)) } });
  } finally {
    await opened.close();
  }
}

function nameOf(place: Extract<StorePlace, { postgres: string }>): string {
  const { host, pathname } = new URL(place.postgres);
  const hosts = place.hosts?.map(({ name, port }) => `${name}:${port}`).join(",");
  return (place.socketFolder ?? hosts ?? host) + pathname;
}

/** The last record of each log of the copy is the same in the store, unless retention has removed it there. */
async function compare(at: string, copy: Store, store: Store): Promise<{ says: string; differs: boolean }> {
  // First the copy's, so that what is written meanwhile is missing there, and not here.
  const there = await copy.audit.heads();
  const here = await store.audit.heads();
  const differing: string[] = [];
  for (const { log, seq, hash } of there) {
    const [own] = await store.log.read({ log, afterSeq: seq - 1, limit: 1 });
    if (own === undefined || (own.seq === seq && own.hash !== hash)) differing.push(word(log));
  }
  const lastOf = new Map(there.map(({ log, seq }) => [log, seq]));
  const missing = here.reduce((sum, { log, seq }) => sum + Math.max(0, seq - (lastOf.get(log) ?? -1)), 0);
  const begin = `Read from ${word(at)}, which is not written to.`;
  if (differing.length > 0) {
    const what = `the last record there of ${differing.join(", ")} is not in the store of the configuration`;
    const why =
      "Either it is no copy of that store, or the store lost or changed records: keep both as they are";
    return { says: `${begin} It differs: ${what}. ${why}.`, differs: true };
  }
  const newest = `Its newest record is from ${(await newestOf(copy)) ?? "no time: it has none"}`;
  const rest =
    missing === 0
      ? "and it has every record of the store"
      : `and ${missing} of the store, the newest from ${await newestOf(store)}, are not there yet`;
  return { says: `${begin} ${newest}, ${rest}.`, differs: false };
}

async function newestOf({ audit }: Store): Promise<string | undefined> {
  const spans = (await audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const [newest] = await audit.find({ terms: [], spans, newestFirst: true, limit: 1 });
  return newest && new Date(newest.timeMs).toISOString();
}

/**
 * AUDIT-D-15: an export is dated by the record of itself, for which a copy is waited for. False where it does not come in
 * time.
 */
export async function hasLook({ store, copy }: Auditor, waitMs = COPY_WAIT_MS): Promise<boolean> {
  if (copy === undefined) return true;
  const recorded = (await store.log.head(ADMIN_LOG))?.seq ?? 0;
  for (let leftMs = waitMs; ; leftMs -= COPY_POLL_MS) {
    const head = await copy.store.log.head(ADMIN_LOG);
    if (head !== undefined && head.seq >= recorded) return true;
    if (leftMs <= 0) return false;
    await new Promise((resolve) => setTimeout(resolve, COPY_POLL_MS));
  }
}
