/**
 * GET /audit/events and GET /audit/checkpoints (PROD-6.3-3): the audit trail, for callers with the scope `audit:read`.
 * A listing shows the logs as they were when it began, so that no event is skipped or shown twice; its last cursor
 * continues with what was written since.
 */

import type { Listing, Parameters } from "../audit/query.ts";
import {
  EVENT_PARAMETERS,
  encodeListing,
  encodeSizes,
  LIMIT_WRONG,
  readEventFilter,
  readLimit,
  readListing,
  readParameters,
  readSizes,
} from "../audit/query.ts";
import type { Term } from "../audit/terms.ts";
import type { ApiCaller } from "../flows/authorize-api.ts";
import { describeCaller } from "../flows/authorize-api.ts";
import { readTrailPage } from "../flows/read-trail.ts";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import type { Ports } from "../ports.ts";
import { defined } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { isJsonObject, parseJson } from "../spec/rfc8259.ts";
import { splitField } from "../spec/rfc9110.ts";
import { httpError, PRIVATE_JSON } from "./answers.ts";
import type { AdmitPorts, Admitted } from "./bearer.ts";
import { admit } from "./bearer.ts";
import type { Handler, HttpRequest, HttpResponse } from "./handler.ts";

const NDJSON = "application/x-ndjson";

// --- answers --------------------------------------------------------------------------------------------------

const badRequest = (description: string): HttpResponse => httpError({ status: 400, description });

/** RFC 9110 12.5.1, in part: a request whose Accept names their type gets lines; preferences are not weighed. */
const wantsLines = (request: HttpRequest): boolean =>
  splitField(request.headers.get("accept") ?? "", ",").some(
    (range) => splitField(range, ";")[0]?.toLowerCase() === NDJSON,
  );

type Page = { member: string; items: readonly string[]; cursor: string; more: boolean };

/**
 * `items` are JSON texts, passed on byte for byte. `Link` is the next page of this listing. The last page has the
 * cursor too, so that a later request continues with what was written since.
 */
function answer(request: HttpRequest, issuer: string, page: Page, rest: JsonObject = {}): HttpResponse {
  const { member, items, cursor, more } = page;
  const here = new URL(request.url);
  here.searchParams.set("cursor", cursor);
  const target = new URL(issuer).origin + here.pathname + here.search;
  const headers: Record<string, string> = { ...PRIVATE_JSON, "Audit-Cursor": cursor, Vary: "Accept" };
  if (more) headers.Link = `<${target}>; rel="next"`;
  if (wantsLines(request)) {
    const text = items.map((item) => `${item}\n`).join("");
    return { status: 200, headers: { ...headers, "Content-Type": NDJSON }, body: text };
  }
  const members = Object.entries({ ...rest, cursor, more }).map(
    ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  const body = `{${JSON.stringify(member)}:[${items.join(",")}]${members.join("")}}`;
  return { status: 200, headers, body };
}

/** AUDIT-D-6: a reading is recorded before anything is shown. */
async function recordReading(
  ports: Pick<Ports, "settings" | "journal">,
  { caller, audited }: Admitted<ApiCaller>,
  parameters: Parameters,
): Promise<void> {
  const { cursor, ...query } = Object.fromEntries(parameters);
  await ports.journal.record({
    event: {
      type: "admin.access",
      outcome: "allow",
      reason: "audit_read",
      request: audited,
      client: describeCaller(caller),
      policy: { digest: ports.settings().policy.digest },
      detail: { query, continued: cursor !== undefined },
    },
  });
}

// --- events ---------------------------------------------------------------------------------------------------

export function auditEventsEndpoint(ports: AdmitPorts & Pick<Ports, "audit">): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/audit/events");
    if (!admitted.ok) return admitted.error;
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
    await recordReading(ports, admitted.value, parameters.value);

    const { lineageOf, terms, holds, ...times } = filter.value;
    const family = lineageOf === undefined ? [] : [await familyOf(ports, lineageOf)];
    const query = { ...times, ...listing, terms: [...family, ...terms], limit };
    const { shown, next } = await readTrailPage(ports.audit, query, holds);
    return answer(request, ports.settings().issuer, {
      member: "events",
      items: shown.map(({ body }) => body),
      cursor: encodeListing(defined({ spans: listing.spans, after: next })),
      more: next !== undefined,
    });
  };
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
    const parameters = readParameters(new URL(request.url).search, ["limit", "cursor"]);
    if (!parameters.ok) return badRequest(parameters.error);
    const limit = readLimit(parameters.value);
    if (limit === undefined) return badRequest(LIMIT_WRONG);
    const cursor = readSizes(parameters.value);
    if (!cursor.ok) return badRequest(cursor.error);
    await recordReading(ports, admitted.value, parameters.value);

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
      cursor: encodeSizes(seen),
      more,
    };
    return answer(request, ports.settings().issuer, page, { keys: [...ports.audit.keys()] });
  };
}
