/** `mandate audit`: reads and verifies the audit trail in the store. */
import { type ChainFailure, checkRecord } from "../../adapters/audit/chain.ts";
import type { EventLog, Head, Store, StoredEvent } from "../../adapters/store/store.ts";
import { eventCells, eventColumns, readEvent } from "../../audit/columns.ts";
import { ocsfText } from "../../audit/ocsf.ts";
import type { AuditPosition, EventFilter, Span } from "../../audit/query.ts";
import { escapeUnsafe } from "../../audit/safe-text.ts";
import type { Term } from "../../audit/terms.ts";
import { readTrailPage } from "../../flows/read-trail.ts";
import { EXIT } from "../../limits/process.ts";
import type { AuditQuery, AuditRecord } from "../../records.ts";
import { defined } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { asCsv, type Format, type Formats } from "../formats.ts";
import { eventLine, jsonLine, titlesOf, word } from "../text.ts";
import { type Auditor, recordLook, trailOf } from "./copy.ts";
import { checkArchived } from "./policies.ts";
import type { Summary } from "./summary.ts";

const PAGE = 1000;

/** The head of each log when the command began, because events that a running server appends later are left out. */
type Logs = ReadonlyMap<string, Head>;

export async function openLogs(store: Store): Promise<Logs> {
  const logs = new Map<string, Head>();
  for (const name of await store.log.logs()) {
    const head = await store.log.head(name);
    if (head !== undefined) logs.set(name, head);
  }
  return logs;
}

/** All of these logs. */
export const spansOf = (logs: Logs): readonly Span[] =>
  [...logs].map(([log, { seq }]) => ({ log, afterSeq: -1, toSeq: seq }));

/** The events of one log up to its head. */
async function* readLog(log: EventLog, name: string, head: Head): AsyncGenerator<StoredEvent, void> {
  let afterSeq = -1;
  for (;;) {
    const page = await log.read({ log: name, afterSeq, limit: PAGE });
    for (const event of page) {
      if (event.seq > head.seq) return;
      yield event;
    }
    const last = page.at(-1);
    if (last === undefined) return;
    afterSeq = last.seq;
  }
}

/** How events are printed. */
export const FORMATS: Formats<AuditRecord> & { ocsf: Format<AuditRecord> } = {
  text: { line: eventLine },
  ndjson: { line: ({ body }) => escapeUnsafe(body) },
  csv: asCsv(eventColumns, eventCells),
  ocsf: { line: (record) => escapeUnsafe(ocsfText(record) ?? "") },
};

type Listed = {
  log: string | undefined;
  /** The number of matching events that are printed at most, the last ones. */
  limit: number | undefined;
  format: Format<AuditRecord>;
  /** What the events are counted in, in place of their lines. */
  summary: Summary | undefined;
  /** The options, as they are recorded. */
  asked: JsonObject;
};

/** Nothing else waits for a command. */
export const turn = async (): Promise<void> => {};

/** PAGE-D-39: most pages, and what is refused before its client is proven, make no event. */
const NO_EVENT =
  'No event matches. Not every request makes one: look for its line in the log of the server, by "supportNumber" or "requestId".';

export async function showEvents(
  auditor: Auditor,
  { holds, lineageOf, ...filter }: EventFilter,
  { log, limit, format, summary, asked }: Listed,
): Promise<number> {
  const { print, printError } = auditor;
  const store = trailOf(auditor);
  const titles = titlesOf(auditor);
  const logs = await openLogs(store);
  if (log !== undefined && !logs.has(log)) {
    printError(`--log: there is no log ${word(log)}. Existing logs: ${[...logs.keys()].map(word).join(" ")}`);
    return EXIT.refused;
  }
  await recordLook(auditor, { command: "audit", ...asked });
  const spans = spansOf(logs).filter((span) => span.log === (log ?? span.log));
  const query = { ...filter, spans, newestFirst: limit !== undefined };
  if (format.header !== undefined && summary === undefined) print(format.header);
  const kept: AuditRecord[] = [];
  let found = 0;
  let left = limit ?? Number.POSITIVE_INFINITY;
  for (let after: AuditPosition | undefined; left > 0; ) {
    const page = await readTrailPage(
      { audit: store.audit, turn },
      defined<AuditQuery>({ ...query, after, limit: Math.min(left, PAGE) }),
      holds,
    );
    if (summary !== undefined) for (const event of page.shown) summary.take(event);
    else if (limit === undefined) for (const event of page.shown) print(format.line(event, titles));
    else kept.push(...page.shown);
    found += page.shown.length;
    if (page.next === undefined) break;
    left -= page.shown.length;
    after = page.next;
  }
  for (const event of kept.toReversed()) print(format.line(event, titles));
  for (const line of summary?.lines(titles) ?? []) print(line);
  if (found === 0) printError(asked.request === undefined ? "No event matches." : NO_EVENT);
  return EXIT.done;
}

/** AUDIT-D-5: the token and every token that it descends from, oldest first. */
export async function showLineage(
  auditor: Auditor,
  jti: string,
  format: Format<AuditRecord>,
): Promise<number> {
  const { print, printError } = auditor;
  const store = trailOf(auditor);
  const titles = titlesOf(auditor);
  const logs = await openLogs(store);
  await recordLook(auditor, { command: "audit", jti });
  const token = (await findGrants(store, logs, [jti])).get(jti);
  if (token === undefined) {
    printError(`--jti: no event records a token with the jti ${word(jti)}.`);
    return EXIT.refused;
  }
  if (format.header !== undefined) print(format.header);
  const ancestors = (readEvent(token.body)?.granted?.parent_jti ?? []).toReversed();
  const found = await findGrants(store, logs, ancestors);
  for (const ancestor of ancestors) {
    const event = found.get(ancestor);
    if (event === undefined) {
      printError(`No event records the ancestor ${word(ancestor)}: retention may have removed it.`);
    } else print(format.line(event, titles));
  }
  print(format.line(token, titles));
  return EXIT.done;
}

/** The events that issued these tokens; for a grant that another server issued, the event of its redemption. */
async function findGrants(
  { audit }: Store,
  logs: Logs,
  jtis: readonly string[],
): Promise<ReadonlyMap<string, AuditRecord>> {
  const spans = spansOf(logs);
  const redeemed: Term = { name: "type", value: "grant.redeemed" };
  const found = new Map<string, AuditRecord>();
  for (const jti of jtis) {
    const [event] = [
      ...(await audit.find({ terms: [[{ name: "granted", value: jti }]], spans, limit: 1 })),
      ...(await audit.find({ terms: [[{ name: "presented", value: jti }], [redeemed]], spans, limit: 1 })),
    ];
    if (event !== undefined) found.set(jti, event);
  }
  return found;
}

/** What is known of one log; `from` is above 0 where retention removed the events before it. */
type VerifiedLog = { log: string; from: number; events?: number; head?: string; failure?: string };

export async function verifyLogs(auditor: Auditor, json: boolean): Promise<number> {
  const { copy, print, printError } = auditor;
  const store = trailOf(auditor);
  const logs = await openLogs(store);
  await recordLook(auditor, { command: "audit verify" }, json ? printError : print);
  const removed = await findRemoved(store);
  let code: number = copy?.differs ? EXIT.refused : EXIT.done;
  for (const [name, head] of logs) {
    const verified = await verifyLog(store, name, head, removed.get(name) ?? 0);
    const isIntact = verified.failure === undefined;
    if (!isIntact) code = EXIT.refused;
    if (json) print(jsonLine(verified));
    else (isIntact ? print : printError)(verifiedLine(verified));
  }
  const changed = await changedPolicies(store);
  for (const one of changed) {
    if (json) print(jsonLine(one));
    else printError(one.failure);
  }
  const result = changed.length > 0 ? EXIT.refused : code;
  if (json) return result;
  if (code === EXIT.refused) {
    printError(
      "The audit trail was changed. Keep the database as it is, and compare it with an earlier export, the " +
        "checkpoints and the witness: mandate audit verify --export.",
    );
  }
  print(
    "The hash chain alone does not show a truncated tail, a deleted log or a recomputed chain: " +
      "verify an export with its checkpoints and a witness for that (mandate audit verify --export).",
  );
  return result;
}

/** Each log, and each archived policy, of the store that is not as it was written. */
export async function faultsOf(store: Store): Promise<readonly string[]> {
  const removed = await findRemoved(store);
  const faults: string[] = [];
  for (const [name, head] of await openLogs(store)) {
    const verified = await verifyLog(store, name, head, removed.get(name) ?? 0);
    if (verified.failure !== undefined) faults.push(verifiedLine(verified));
  }
  return [...faults, ...(await changedPolicies(store)).map(({ failure }) => failure)];
}

async function changedPolicies({ policies }: Store): Promise<readonly { policy: string; failure: string }[]> {
  const changed: { policy: string; failure: string }[] = [];
  for (const policy of await policies.digests()) {
    const found = await policies.find(policy);
    const checked = found && checkArchived(found);
    if (checked?.ok === false) changed.push({ policy, failure: checked.error });
  }
  return changed;
}

async function verifyLog(store: Store, log: string, head: Head, removed: number): Promise<VerifiedLog> {
  const [first] = await store.log.read({ log, limit: 1 });
  // AUDIT-D-8: records that retention removed, by its own event, are not reported as missing.
  const start = first !== undefined && first.seq <= removed ? first : undefined;
  const from = start?.seq ?? 0;
  const failure = await firstFailure(store.log, log, head, start);
  if (failure !== undefined) return { log, from, failure: describeFailure(failure) };
  return { log, from, events: head.seq - from + 1, head: head.hash };
}

function verifiedLine({ log, from, events, head = "", failure }: VerifiedLog): string {
  if (failure !== undefined) return `${word(log)}: ${failure}`;
  const begin = from === 0 ? "0" : `${from} (retention removed the events before it)`;
  return `${word(log)}: ${events} events, chain intact from event ${begin}; head ${word(head)}`;
}

/** The first record that retention kept of each log, as its own events say. */
async function findRemoved({ audit }: Store): Promise<ReadonlyMap<string, number>> {
  const spans = (await audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const terms = [[{ name: "type", value: "log.pruned" } as const]];
  const below = new Map<string, number>();
  for (const { body } of await audit.find({ terms, spans, limit: PAGE })) {
    const detail = readEvent(body)?.detail?.below;
    for (const [log, seq] of Object.entries(detail ?? {})) {
      if (typeof seq === "number") below.set(log, Math.max(seq, below.get(log) ?? 0));
    }
  }
  return below;
}

async function firstFailure(
  log: EventLog,
  name: string,
  head: Head,
  start: StoredEvent | undefined,
): Promise<ChainFailure | undefined> {
  let last = start && start.seq > 0 ? { seq: start.seq - 1, hash: start.prev } : undefined;
  for await (const event of readLog(log, name, head)) {
    const checked = checkRecord(last, event);
    if (!checked.ok) return checked.error;
    last = checked.value;
  }
  return undefined;
}

function describeFailure(failure: ChainFailure): string {
  const { kind, seq } = failure;
  switch (kind) {
    case "record_missing":
      return `record ${seq} is missing`;
    case "hash_differs":
      return `record ${seq} does not match its hash`;
    case "prev_differs":
      return `record ${seq} does not contain the hash of the record before it`;
    case "body_malformed":
      return `the body of record ${seq} is not an event`;
    case "body_differs":
      return `record ${seq} does not match its body: "${failure.field}" differs`;
    case "record_after_end":
      return `record ${seq} follows the end of the log, which was retired`;
    case "genesis_misplaced":
      return seq === 0 ? "record 0 is not log.genesis" : `record ${seq} is a second log.genesis`;
  }
}
