/** The closure report, against the list of what was given that the trial keeps itself. */
import assert from "node:assert/strict";
import type { Site } from "./site.ts";
import type { Taken } from "./work.ts";

type Report = {
  state: string;
  settled?: boolean;
  as_of: number;
  issued?: number;
  open: { target: string; tokens: number; until: number; told: string }[];
  partners: { issuer: string; grants: number; until: number; told: string }[];
};

export const readReport = async (site: Site, index: number, job: string): Promise<Report> => {
  const at = site.instances[index % site.instances.length] ?? assert.fail();
  return (await site.manage(at, `/jobs/${job}`)) as Report;
};

/** In what the report differs from the list of what was given, or nothing. */
export function differenceOf({ open, as_of }: Report, given: readonly Taken[]): string {
  const living = given.filter(({ expiresAtSeconds }) => expiresAtSeconds > as_of);
  const listed = [...Map.groupBy(living, ({ target }) => target)].map(
    ([target, of]) => `${target} ${of.length} ${Math.max(...of.map((one) => one.expiresAtSeconds))}`,
  );
  const told = open.map(({ target, tokens, until }) => `${target} ${tokens} ${until}`);
  const [mine, theirs] = [listed.toSorted().join(), told.toSorted().join()];
  return mine === theirs ? "" : `tells ${theirs}, where ${mine} was given`;
}
