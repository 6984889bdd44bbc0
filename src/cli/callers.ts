/** `mandate agents list` and `mandate clients list`: what may call this server, the longest idle first. */
import { clock } from "../adapters/clock.ts";
import { type Column, cellsOf, oneValue } from "../audit/columns.ts";
import { readUtcTime } from "../audit/filters.ts";
import { CALLERS_EVENTS_MAX, CALLERS_SECONDS } from "../limits/audit.ts";
import { EXIT } from "../limits/process.ts";
import { defined, err, type Result } from "../result.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { recordAccess } from "./admin-log.ts";
import { openLogs, spansOf } from "./audit/trail.ts";
import { explainAgent } from "./callers/explain.ts";
import { gatherCallers, type ListedCaller } from "./callers/gather.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import { asCsv, type Format, type Formats, readFormat } from "./formats.ts";
import { type CommandArguments, readWhole } from "./options.ts";
import { columnFields, jsonLine, time, word } from "./text.ts";

export const agentsCommand = (given: CommandArguments): Result<Command, string> =>
  given.form === "explain" ? explainAgent(given) : listCallers(given, "agents list", () => true);

/** Those that have a record of a client, or a document. */
export const clientsList = (given: CommandArguments): Result<Command, string> =>
  listCallers(
    given,
    "clients list",
    ({ state, from }) => state !== undefined || from === "metadata_document",
  );

function listCallers(
  given: CommandArguments,
  command: string,
  isListed: (caller: ListedCaller) => boolean,
): Result<Command, string> {
  const format = readFormat(given, CALLER_FORMATS);
  if (!format.ok) return format;
  const since = given.one("since");
  const sinceMs = since === undefined ? undefined : readUtcTime(since);
  if (since !== undefined && sinceMs === undefined) {
    return err("--since is not a UTC time like 2027-01-31T00:00:00Z");
  }
  const limit = readWhole(given, "limit");
  if (!limit.ok) return limit;
  const wanted = { command, isListed, format: format.value, sinceMs, limit: limit.value };
  return onStore(given, (admin) => show(admin, wanted));
}

type Wanted = {
  command: string;
  isListed: (caller: ListedCaller) => boolean;
  format: Format<ListedCaller>;
  sinceMs: number | undefined;
  limit: number | undefined;
};

async function show(admin: Admin, { command, isListed, format, limit, ...wanted }: Wanted): Promise<number> {
  const { store, settings, print, printError } = admin;
  const nowSeconds = clock.nowSeconds();
  const sinceMs = wanted.sinceMs ?? 1000 * (nowSeconds - CALLERS_SECONDS);
  const spans = spansOf(await openLogs(store));
  await recordAccess(admin, defined<JsonObject>({ command, since: time(sinceMs), limit }));
  const look = { spans, sinceMs, nowSeconds, eventsMax: CALLERS_EVENTS_MAX };
  const { callers, seen } = await gatherCallers(store, settings, look);
  const listed = callers.filter(isListed);
  if (format.header !== undefined) print(format.header);
  for (const caller of listed.slice(0, limit)) print(format.line(caller));
  const more = limit === undefined || listed.length <= limit ? "" : `${listed.length - limit} more. `;
  printError(
    `${more}Uses are looked for since ${time(sinceMs)}; those under a prefix, and callers that nothing names, in the ${seen.events} events since ${time(seen.fromMs)}.`,
  );
  return EXIT.done;
}

const atSeconds = (seconds: number | undefined): readonly string[] =>
  seconds === undefined ? [] : [time(seconds * 1000)];

/** A line of text begins with the first two; `member` is the name in JSON, under which a value is as it is there. */
type CallerColumn = Column<ListedCaller> & {
  member: string;
  json: (caller: ListedCaller) => Json | undefined;
};

const text = (
  name: string,
  member: string,
  of: (caller: ListedCaller) => string | readonly string[] | undefined,
): CallerColumn => ({
  name,
  member,
  valuesOf: (caller) => [of(caller) ?? []].flat(),
  json: (caller) => of(caller) as string | string[] | undefined,
});
const date = (
  name: string,
  member: string,
  of: (caller: ListedCaller) => number | undefined,
): CallerColumn => ({
  name,
  member,
  json: of,
  valuesOf: (caller) => atSeconds(of(caller)),
});

const COLUMNS: readonly CallerColumn[] = [
  text("from", "from", ({ from }) => from),
  {
    name: "last",
    member: "last_used_at",
    valuesOf: ({ last }) => oneValue(last === undefined ? "none" : time(last.timeMs)),
    json: ({ last }) => last && Math.floor(last.timeMs / 1000),
  },
  text("outcome", "last_outcome", ({ last }) => last?.outcome),
  // B7523-D-5, STU-D-4: a client that names the token endpoint is still to be changed.
  text("audience", "last_audience", ({ last }) => last?.audience),
  text("title", "title", ({ answers }) => answers?.title),
  text("purpose", "purpose", ({ answers }) => answers?.purpose),
  text("owner", "owner", ({ answers }) => answers?.owner),
  text("contact", "contact", ({ answers }) => answers?.contact),
  text("claimed-name", "claimed_name", ({ claims }) => claims?.name),
  text("claimed-contacts", "claimed_contacts", ({ claims }) => claims?.contacts),
  text("method", "method", ({ method }) => method),
  text("class", "class", ({ registrationClass }) => registrationClass),
  text("grant-type", "grant_types", ({ grantTypes }) => grantTypes),
  text("workload", "workload", ({ workload }) => workload),
  text("target", "default_target", ({ defaultTarget }) => defaultTarget),
  date("created", "created_at", ({ createdAtSeconds }) => createdAtSeconds),
  {
    name: "secrets-end",
    member: "secrets_expire_at",
    valuesOf: ({ secretsEnd = [] }) =>
      secretsEnd.map((end) => (Number.isFinite(end) ? time(end * 1000) : "never")),
    // 0 for one that does not, as in RFC 7591 3.2.1.
    json: ({ secretsEnd }) => secretsEnd?.map((end) => (Number.isFinite(end) ? end : 0)),
  },
  date("disabled", "disabled_at", ({ disabledAtSeconds }) => disabledAtSeconds),
];
const FIRST: readonly Column<ListedCaller>[] = [
  { name: "id", valuesOf: ({ id }) => [id] },
  { name: "state", valuesOf: ({ state }) => oneValue(state) },
];

export const CALLER_FORMATS: Formats<ListedCaller> = {
  text: {
    line: (caller) => [word(caller.id), caller.state ?? "named", ...columnFields(COLUMNS, caller)].join(" "),
  },
  ndjson: {
    line: (caller) => {
      const { id, state, from } = caller;
      const name = from === "partner" || from === "trusted_issuer" ? "issuer" : "client_id";
      const rest = COLUMNS.map(({ member, json }) => [member, json(caller)]);
      return jsonLine(defined<JsonObject>({ [name]: id, state, ...Object.fromEntries(rest) }));
    },
  },
  csv: asCsv(
    [...FIRST, ...COLUMNS].map(({ name }) => name),
    (caller) => cellsOf([...FIRST, ...COLUMNS], caller),
  ),
};
