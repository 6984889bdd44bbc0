/** Where `mandate policy replay` reads the trail: the store or a copy of it, or an export, each whole and in order of time. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../../adapters/store/store.ts";
import type { AuditPosition } from "../../audit/query.ts";
import { type Recorded, readRecorded } from "../../audit/recorded.ts";
import { AUDIT_PAGE_MAX } from "../../limits/audit.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { type Files, verifyAudit } from "../audit/export.ts";
import { checkArchived, readPolicyLine } from "../audit/policies.ts";
import { faultsOf } from "../audit/trail.ts";
import { readLines } from "../named-file.ts";

export type TrailSource = {
  /** Whether it is as it was recorded; `notes` are what cannot be proven. */
  verify(): Promise<Result<{ notes: readonly string[] }, readonly string[]>>;
  /** The text of a policy, which has the digest; undefined where there is none. */
  policy(digest: string): Promise<Result<string, string> | undefined>;
  /** The events that tell consents and jobs, of whatever time. */
  told(): AsyncIterable<string>;
  /** All events, from this time on at least. */
  events(fromMs: number): AsyncIterable<string>;
};

const TOLD = ["consent.recorded", "job.approved"] as const;

export function storeSource(store: Store): TrailSource {
  const spansNow = async () =>
    (await store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  async function* pages(fromMs: number, terms: Parameters<Store["audit"]["find"]>[0]["terms"]) {
    const spans = await spansNow();
    const earliestMs = Math.max(fromMs, (await store.audit.earliestMs(spans)) ?? 0);
    let after: AuditPosition = { timeMs: earliestMs - 1, log: "", seq: -1 };
    for (;;) {
      const page = await store.audit.find({ terms, spans, after, limit: AUDIT_PAGE_MAX });
      for (const { body } of page) yield body;
      const last = page.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }
  return {
    verify: async () => {
      const faults = await faultsOf(store);
      return faults.length === 0 ? ok({ notes: [] }) : err(faults);
    },
    policy: async (digest) => {
      const found = await store.policies.find(digest);
      const checked = found && checkArchived(found);
      return checked?.ok ? ok(checked.value.body) : checked;
    },
    told: () => pages(0, [TOLD.map((value) => ({ name: "type", value }))]),
    events: (fromMs) => pages(fromMs, []),
  };
}

/** `witness` is a copy of the witness's file. */
export function exportSource(folder: string, partial: boolean, witness?: string): TrailSource {
  const [events = "", checkpoints, jwks, policies = ""] = NAMES.map((name) => join(folder, name));
  return {
    verify: async () => {
      const missing = NAMES.filter((name) => !existsSync(join(folder, name)));
      if (missing.length > 0) return err([`${folder} is not a whole export: it lacks ${missing.join(", ")}`]);
      const given = { export: events, checkpoints, jwks, policies, witness, partial: partial || undefined };
      const { code, lines } = await verifyAudit(defined<Files>(given));
      return code === 0 ? ok({ notes: lines.filter((line) => /^\s*Not proven/.test(line)) }) : err(lines);
    },
    policy: async (digest) => {
      for await (const line of readLines(policies)) {
        if (!line.startsWith(`{"digest":"${digest}"`)) continue;
        const read = readPolicyLine(line);
        return read.ok ? ok(read.value.body) : read;
      }
      return undefined;
    },
    async *told() {
      for await (const line of readLines(events)) {
        if (TOLD.some((type) => line.includes(`"type":"${type}"`))) yield line;
      }
    },
    events: () => readLines(events),
  };
}

const NAMES = ["events.ndjson", "checkpoints.ndjson", "jwks.json", "policies.ndjson"];

/** The events among these lines, of a period; what is no event is left to `mandate audit verify`. */
export async function* recordedIn(
  lines: AsyncIterable<string>,
  { fromMs, toMs } = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY },
): AsyncGenerator<Recorded> {
  for await (const line of lines) {
    const event = readRecorded(line);
    const timeMs = event === undefined ? Number.NaN : Date.parse(event.time);
    if (event !== undefined && timeMs >= fromMs && timeMs < toMs) yield event;
  }
}
