/**
 * Comma-separated values, RFC 4180, for spreadsheets: https://www.rfc-editor.org/rfc/rfc4180.html. Covers 2 the line of a
 * table. Values are chosen by peers, so none may end its cell, and none may be read as a formula.
 */
import { escapeUnsafe } from "./safe-text.ts";

/** What makes a spreadsheet compute a cell, and the apostrophe, so that one in front is always ours. */
const FORMULA = /^\s*['=+\-@\uff1d\uff0b\uff0d\uff20]/;

/** Where a comma separates decimals, spreadsheets split at semicolons too, and heed no quotes within a cell. */
const BEHIND_SEMICOLON = /;(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/**
 * AUDIT-D-7: a cell that begins like a formula begins with an apostrophe instead; controls, line ends and invisible
 * characters are written as escapes of JSON.
 */
function cell(text: string): string {
  const safe = escapeUnsafe(text).replaceAll(BEHIND_SEMICOLON, "\\u003b");
  const shown = FORMULA.test(safe) ? `'${safe}` : safe;
  return /[",]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}

/** One line without its end, which is CR LF. */
export const csvLine = (cells: readonly string[]): string => cells.map(cell).join(",");

/** Lines with their ends, the header first. */
export const csvText = (header: readonly string[], rows: readonly (readonly string[])[]): string =>
  [header, ...rows].map((cells) => `${csvLine(cells)}\r\n`).join("");
