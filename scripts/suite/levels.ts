/**
 * How binding the clauses of checks are, where it is less than MUST: a server that fails such a check may have a reason.
 * `own` are rules of the product beside the suite, which no document asks of others.
 */
export type Level = "MUST" | "SHOULD" | "MAY" | "own";

const LISTS: Record<Exclude<Level, "MUST">, string> = {
  SHOULD: `
    B7523-4-9 CIMD-5.1-1 CIMD-8.7-1 DTR-11.3-1 IDC-2.3.3-3 IDC-5.3-1 IDC-5.5-1 IDC-5.5-2 IDC-5.5-3
    IDJAG-4.3.4-5 IDJAG-4.4.3-1 IDJAG-7.1-1 RFC6749-4.4.3-1 RFC6749-5.1-2 RFC7517-4.5-1
    RFC7521-4.1-6 RFC7591-2.1-1 RFC7592-2.3-2 RFC8693-2.1-4 RFC8693-2.2.1-10 RFC8693-2.2.1-6 RFC8693-2.2.2-3
    RFC8705-3.1-1 RFC8707-2-7 RFC8725-3.10-1 RFC8725-3.11-1 RFC8935-2-2 RFC9068-2.1-2 RFC9068-2.1-6
    RFC9068-2.2-6 RFC9068-2.2.3-1 RFC9396-9.1-1 SSF-4.1-2 WAG-5-3 WAG-5-5 WIF-S-3`,
  MAY: `
    CIMD-4-4 IDC-2.4.2-4 RFC6749-2.3.1-3 RFC6749-3.2.1-2 RFC7009-2.1-9 RFC7523-3-14 RFC7662-2.1-5
    RFC8414-2-11 RFC8693-2.1-10 RFC8693-2.1-24 RFC8693-2.1-25 RFC8693-2.1-3 RFC8693-4.4-2
    RFC8705-3.3-1 RFC9449-11.1-2 RFC9449-4.2-8`,
  own: `
    PCL-D-16 PLAT-D-1 PLAT-D-15 PLAT-D-5 PROD-1.6-3 PROD-2.6-1 PROD-2.6-5 PROD-2.6-6 PROD-4.1-8
    PROD-4.1r4-1 RAR-D-2 RFC8693-D-1 SSF-D-2 SSF-D-4 SSF-D-6 SSF-D-8`,
};

const levels = new Map(
  (Object.keys(LISTS) as (keyof typeof LISTS)[]).flatMap((level) =>
    LISTS[level]
      .trim()
      .split(/\s+/)
      .map((clause): [string, Level] => [clause, level]),
  ),
);

export const levelOf = (clause: string): Level => levels.get(clause) ?? "MUST";
/** What is to be said of a failure of such a clause. */
export const weaker = (clause: string): string => {
  const level = levelOf(clause);
  return level === "MUST" ? "" : level === "own" ? " (a rule of ours)" : ` (${level})`;
};
