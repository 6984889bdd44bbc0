/** A run as text, JSON and JUnit. */
import { weaker } from "./levels.ts";
import type { Run } from "./runner.ts";
import type { Outcome, Result } from "./types.ts";

const OUTCOMES: readonly Outcome[] = ["passed", "failed", "not offered", "could not be asked"];

const countOf = (results: readonly Result[], outcome: Outcome): number =>
  results.filter((result) => result.outcome === outcome).length;

const byArea = (results: readonly Result[]): [string, Result[]][] => [
  ...Map.groupBy(results, ({ area }) => area),
];

const indented = (text: string): string => text.replaceAll(/^/gm, "      ");

/** Without `all` what failed or could not be asked; with it each check, with what was sent and received. */
export function toText({ server, issuer, results }: Run, all: boolean): string {
  const lines = [`${server} at ${issuer}`, ""];
  for (const result of results) {
    const { id, clause, must, outcome, note, exchanged } = result;
    if (!all && (outcome === "passed" || outcome === "not offered")) continue;
    lines.push(`${outcome.toUpperCase()}  ${id}  ${clause}${weaker(clause)}`, `    ${must}`);
    if (note !== "") lines.push(`    ${note}`);
    if (outcome === "failed" || all)
      for (const { sent, received } of exchanged)
        lines.push("    sent", indented(sent), "    received", indented(received));
    lines.push("");
  }
  const width = Math.max(...results.map(({ area }) => area.length), 4);
  lines.push(`${"area".padEnd(width)}  ${OUTCOMES.join("  ")}`);
  for (const [area, some] of [...byArea(results), ["all", results] as const]) {
    const counts = OUTCOMES.map((outcome) => String(countOf(some, outcome)).padStart(outcome.length));
    lines.push(`${area.padEnd(width)}  ${counts.join("  ")}`);
  }
  return lines.join("\n");
}

export const toJson = ({ server, issuer, results }: Run): string => {
  const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, countOf(results, outcome)]));
  return `${JSON.stringify({ server, issuer, counts, results }, null, 2)}\n`;
};

const escaped = (text: string): string =>
  text
    // What XML 1.0 cannot hold is left out.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters meant
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/** One suite for each area; what is not offered or could not be asked is skipped. */
export function toJunit({ server, results }: Run): string {
  const suites = byArea(results).map(([area, some]) => {
    const cases = some.map(({ id, clause, must, outcome, note, exchanged }) => {
      const story = exchanged
        .map(({ sent, received }) => `sent\n${sent}\n\nreceived\n${received}`)
        .join("\n\n");
      const inside =
        outcome === "failed"
          ? `<failure message="${escaped(note)}">${escaped(story)}</failure>`
          : outcome === "passed"
            ? ""
            : `<skipped message="${escaped(`${outcome}: ${note}`)}"/>`;
      return `<testcase classname="${escaped(area)}" name="${escaped(`${clause}${weaker(clause)} ${id}: ${must}`)}">${inside}</testcase>`;
    });
    const skipped = some.length - countOf(some, "passed") - countOf(some, "failed");
    const counts = `tests="${some.length}" failures="${countOf(some, "failed")}" skipped="${skipped}"`;
    return `<testsuite name="${escaped(area)}" ${counts}>\n${cases.join("\n")}\n</testsuite>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${escaped(server)}">\n${suites.join("\n")}\n</testsuites>\n`;
}
