/** What the steps of the rehearsal share, and what each of them tells. */
import type { Instance, Site } from "./site.ts";
import type { Stage } from "./stage.ts";

export type Scene = {
  readonly stage: Stage;
  readonly site: Site;
  readonly one: Instance;
  readonly two: Instance;
  /** When the next signing key was announced (monotonic). */
  announcedMs: number;
  /** A token that was answered before the backup, when that began, and the instance on the copy. */
  token: string;
  snapshotMs: number;
  restored?: Instance;
};

/** What was found, in figures, and what is wrong of it. */
export type Found = { figures: string; wrong: readonly string[] };

/** What is false, in words. */
export const claims = (facts: Readonly<Record<string, boolean>>): readonly string[] =>
  Object.keys(facts).filter((words) => facts[words] === false);
