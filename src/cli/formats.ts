/** How a command prints rows: as text for people, as one JSON object a line, or as CSV. */
import { csvLine } from "../audit/csv.ts";
import { err, ok, type Result } from "../result.ts";
import type { CommandArguments } from "./options.ts";
import type { Titles } from "./text.ts";

/** A line for each row, behind the header if there is one; what programs read has no titles (NAME-D-6). */
export type Format<Row> = { header?: string; line: (row: Row, titles?: Titles) => string };
export type Formats<Row> = Readonly<Record<"text" | "ndjson" | "csv", Format<Row>>>;

/** A line ends with CR LF (RFC 4180 2), of which the terminal adds the LF. */
export const asCsv = <Row>(
  columns: readonly string[],
  cells: (row: Row) => readonly string[],
): Format<Row> => ({
  header: `${csvLine(columns)}\r`,
  line: (row) => `${csvLine(cells(row))}\r`,
});

/** `--json` is that of every command. */
export function readFormat<Row>(given: CommandArguments, formats: Formats<Row>): Result<Format<Row>, string> {
  const name = given.one("format") ?? (given.has("json") ? "ndjson" : "text");
  if (given.has("json") && name !== "ndjson") return err("--json is --format ndjson, and takes no other");
  const format = Object.entries<Format<Row>>(formats).find(([known]) => known === name)?.[1];
  return format === undefined ? err(`--format is not one of ${Object.keys(formats).join(", ")}`) : ok(format);
}
