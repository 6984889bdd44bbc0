/**
 * GET /audit/events and GET /audit/checkpoints (PROD-6.3-3): the audit trail, for callers with the scope `audit:read`.
 * A listing shows the logs as they were when it began, so that no event is skipped or shown twice; its last cursor
 * continues with what was written since.
 */

import { eventCells, eventColumns } from "../audit/columns.ts";
import { csvText } from "../audit/csv.ts";
import { OCSF_TYPE, ocsfText } from "../audit/ocsf.ts";
import {
  EVENT_PARAMETERS,
  encodeListing,
  encodeSizes,
  LIMIT_WRONG,
  type Listing,
  type Parameters,
  readEventFilter,
  readLimit,
  readListing,
  readParameters,
  readSizes,
} from "../audit/query.ts";
import type { Term } from "../audit/terms.ts";
import { type ApiCaller, describeCaller } from "../flows/authorize-api.ts";
import { readTrailPage } from "../flows/read-trail.ts";
import { AUDIT_EVENTS_READ } from "../limits/audit.ts";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import type { Ports } from "../ports.ts";
import type { AuditRecord } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { isJsonObject, type JsonObject, parseJson } from "../spec/rfc8259.ts";
import { chooseMediaType } from "../spec/rfc9110.ts";
import { httpError, PRIVATE_JSON } from "./answers.ts";
import { type AdmitPorts, type Admitted, admit } from "./bearer.ts";
import type { Handler, HttpRequest, HttpResponse } from "./handler.ts";

// --- answers --------------------------------------------------------------------------------------------------

const badRequest = (description: string): HttpResponse => httpError({ status: 400, description });

/** `items` are JSON texts, passed on byte for byte; `rows` are cells under the names of `columns`. */
type Page = {
  member: string;
  items: readonly string[];
  columns: readonly string[];
  rows: () => Promise<readonly (readonly string[])[]>;
  /** The items for security tools, where there are any. */
  ocsf?: () => Promise<readonly string[]>;
  cursor: string;
  more: boolean;
};

type Format = { contentType: string; write: (page: Page, rest: JsonObject) => Promise<string> };

/** By media type; the first is for a request that says nothing of it. */
const FORMATS: Readonly<Record<string, Format>> = {
  "application/json": {
    contentType: PRIVATE_JSON["Content-Type"],
    async write({ member, items, cursor, more }, rest) {
      const members = Object.entries({ ...rest, cursor, more }).map(
        ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
      );
      return `{${JSON.stringify(member)}:[${items.join(",")}]${members.join("")}}`;
    },
  },
  "application/x-ndjson": {
    contentType: "application/x-ndjson",
    write: async ({ items }) => items.map((item) => `${item}\n`).join(""),
  },
  "text/csv": {
    contentType: "text/csv; charset=utf-8; header=present",
    write: async ({ columns, rows }) => csvText(columns, await rows()),
  },
};
/** Of events alone (AUDIT-D-20). */
const EVENT_FORMATS: typeof FORMATS = {
  ...FORMATS,
  [OCSF_TYPE]: {
    contentType: OCSF_TYPE,
    write: async ({ ocsf }) => ((await ocsf?.()) ?? []).map((item) => `${item}\n`).join(""),
  },
};

/** The format that the request accepts; a refusal if it accepts none. */
function formatFor(request: HttpRequest, formats: typeof FORMATS): Result<Format, HttpResponse> {
  const types = Object.keys(formats);
  const type = chooseMediaType(request.headers.get("accept") ?? "", types);
  const format = type === undefined ? undefined : formats[type];
  if (format !== undefined) return ok(format);
  return err(httpError({ status: 406, description: `the answer is one of ${types.join(", ")}` }));
}

/**
 * `Link` is the next page of this listing. The last page has the cursor too, so that a later request continues with what
 * was written since. Both are fields, because only JSON has a place for them in the body.
 */
async function answer(
  request: HttpRequest,
  issuer: string,
  { contentType, write }: Format,
  page: Page,
  rest: JsonObject = {},
): Promise<HttpResponse> {
  const { cursor, more } = page;
  const here = new URL(request.url);
  here.searchParams.set("cursor", cursor);
  const target = new URL(issuer).origin + here.pathname + here.search;
  const fields = { "Content-Type": contentType, "Audit-Cursor": cursor, Vary: "Accept" };
  const headers: Record<string, string> = { ...PRIVATE_JSON, ...fields };
  if (more) headers.Link = `<${target}>; rel="next"`;
  return { status: 200, headers, body: await write(page, rest) };
}

/** AUDIT-D-6: a reading is recorded before anything is shown; `what` says of what. */
export async function recordAuditReading(
  ports: Pick<Ports, "settings" | "journal">,
  { caller, audited }: Admitted<ApiCaller>,
  what: JsonObject,
): Promise<void> {
  await ports.journal.record({
    event: {
      type: "admin.access",
      outcome: "allow",
      reason: "audit_read",
      request: audited,
      client: describeCaller(caller),
      policy: { digest: ports.settings().policy.digest },
      detail: what,
    },
  });
}

function pageOf(parameters: Parameters): JsonObject {
  const { cursor, ...query } = Object.fromEntries(parameters);
  return { query, continued: cursor !== undefined };
}

// --- events ---------------------------------------------------------------------------------------------------

export function auditEventsEndpoint(ports: AdmitPorts & Pick<Ports, "audit">): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/audit/events");
    if (!admitted.ok) return admitted.error;
    const format = formatFor(request, EVENT_FORMATS);
    if (!format.ok) return format.error;
    const parameters = readParameters(new URL(request.url).search, EVENT_PARAMETERS);
    if (!parameters.ok) return badRequest(parameters.error);
    const limit = readLimit(parameters.value);
    if (limit === undefined) return badRequest(LIMIT_WRONG);
    const filter = readEventFilter(parameters.value);
    if (!filter.ok) return badRequest(filter.error);
    const cursor = readListing(parameters.value);
    if (!cursor.ok) return badRequest(cursor.error);
    // The state of the logs is taken before this reading is recorded, so that a listing does not show itself.
    const listing = await openListing(ports, cursor.value);
    await recordAuditReading(ports, admitted.value, pageOf(parameters.value));

    const { lineageOf, terms, holds, ...times } = filter.value;
    const family = lineageOf === undefined ? [] : [await familyOf(ports, lineageOf)];
    const query = { ...times, ...listing, terms: [...family, ...terms], limit };
    const { shown, next } = await readTrailPage({ ...ports, turn }, query, holds);
    return answer(request, ports.settings().issuer, format.value, {
      member: "events",
      items: shown.map(({ body }) => body),
      columns: eventColumns,
      rows: () => eachOf(shown, eventCells),
      ocsf: async () => (await eachOf(shown, ocsfText)).filter((one) => one !== undefined),
      cursor: encodeListing(defined({ spans: listing.spans, after: next })),
      more: next !== undefined,
    });
  };
}

const turn = (): Promise<unknown> => new Promise(setImmediate);

/** Each event is parsed, so other requests have a turn after a few of them. */
async function eachOf<T>(
  events: readonly AuditRecord[],
  as: (event: AuditRecord) => T,
): Promise<readonly T[]> {
  const items: T[] = [];
  for (const [index, event] of events.entries()) {
    if (index % AUDIT_EVENTS_READ === 0) await turn();
    items.push(as(event));
  }
  return items;
}

/** Begins a new listing, or continues one with its next page or with the events written since it ended. */
async function openListing(ports: Pick<Ports, "audit">, cursor: Listing | undefined): Promise<Listing> {
  if (cursor?.after !== undefined) return cursor;
  const seen = new Map(cursor?.spans.map(({ log, toSeq }) => [log, toSeq]));
  const heads = await ports.audit.heads();
  const spans = heads.map(({ log, seq }) => ({ log, afterSeq: seen.get(log) ?? -1, toSeq: seq }));
  if (cursor === undefined) return { spans };
  // The search begins at the first event of the ranges, because most of the trail is older.
  const earliestMs = await ports.audit.earliestMs(spans);
  return { spans, after: { timeMs: (earliestMs ?? 0) - 1, log: "", seq: -1 } };
}

/** AUDIT-D-5: the events that issued a token and its ancestors, those that it was presented in, and its descendants. */
async function familyOf(ports: Pick<Ports, "audit">, jti: string): Promise<readonly Term[]> {
  const heads = await ports.audit.heads();
  const spans = heads.map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const granted: Term = { name: "granted", value: jti };
  const [issuing] = await ports.audit.find({ terms: [[granted]], spans, limit: 1 });
  const event = issuing && parseJson(issuing.body, CLAIMS_DEPTH_MAX);
  const grant = event?.ok && isJsonObject(event.value) ? event.value.granted : undefined;
  const parents = isJsonObject(grant) && Array.isArray(grant.parent_jti) ? grant.parent_jti : [];
  const ancestors = parents.filter((parent) => typeof parent === "string");
  return [
    granted,
    { name: "presented", value: jti },
    { name: "ancestor", value: jti },
    ...ancestors.map((value): Term => ({ name: "granted", value })),
  ];
}

// --- checkpoints ----------------------------------------------------------------------------------------------

export function auditCheckpointsEndpoint(ports: AdmitPorts & Pick<Ports, "audit">): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/audit/checkpoints");
    if (!admitted.ok) return admitted.error;
    const format = formatFor(request, FORMATS);
    if (!format.ok) return format.error;
    const parameters = readParameters(new URL(request.url).search, ["limit", "cursor"]);
    if (!parameters.ok) return badRequest(parameters.error);
    const limit = readLimit(parameters.value);
    if (limit === undefined) return badRequest(LIMIT_WRONG);
    const cursor = readSizes(parameters.value);
    if (!cursor.ok) return badRequest(cursor.error);
    await recordAuditReading(ports, admitted.value, pageOf(parameters.value));

    // Sizes only grow, so one size for each log says what was shown.
    const seen = new Map(cursor.value);
    const found = await ports.audit.checkpoints(seen, limit + 1);
    const more = found.length > limit;
    const shown = found.slice(0, limit);
    for (const { log, treeSize } of shown) seen.set(log, treeSize);
    const page = {
      member: "checkpoints",
      items: shown.map(({ log, treeSize, jws }) =>
        JSON.stringify({ log, tree_size: treeSize, checkpoint: jws }),
      ),
      columns: ["log", "tree_size", "checkpoint"],
      rows: async () => shown.map(({ log, treeSize, jws }) => [log, String(treeSize), jws]),
      cursor: encodeSizes(seen),
      more,
    };
    return answer(request, ports.settings().issuer, format.value, page, { keys: [...ports.audit.keys()] });
  };
}
