/** Rows of a table of checks. */
import type { Context } from "./context.ts";
import type { Answer } from "./http.ts";
import type { Feature } from "./parties.ts";
import type { Area, Check, Verdict } from "./types.ts";

type More = { needs?: readonly Feature[]; basis?: string | undefined };

export type Row = [
  id: string,
  clause: string,
  must: string,
  request: (c: Context) => Promise<Answer>,
  verdict: Verdict,
  more?: More,
];

/** `common` holds for each row that does not say otherwise. */
export const area = (name: string, common: More, rows: readonly Row[]): Area => ({
  area: name,
  checks: rows.map(([id, clause, must, request, verdict, more = {}]): Check => {
    const { needs = [], basis } = { ...common, ...more };
    return { id, clause, must, request, verdict, needs, ...(basis !== undefined && { basis }) };
  }),
});
