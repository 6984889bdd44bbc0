/** What `mandate policy replay` counts: events that come out the same, those that differ, those that cannot be decided again. */
import type { DecidedEvent, DecisionOutcome } from "../../policy/replay.ts";

/** Events of which examples are kept, and groups that are kept apart. */
const EXAMPLES_MAX = 10;
const GROUPS_MAX = 10_000;

export type Example = {
  event: DecidedEvent & { id: string; time: string };
  is: DecisionOutcome;
  was: DecisionOutcome;
};

/** What a new policy makes of the requests of one caller by one rule. */
export type Flip = "refused" | "allowed" | "changed";
export type Group = { change: Flip; rule: string; caller: string; count: number; examples: Example[] };

export type Tally = {
  /** Events that came out as they were recorded. */
  same: number;
  /** Those that did not, by what differs. */
  differing: Map<string, number>;
  differs: Example[];
  /** Those that were not decided, by why. */
  apart: Map<string, number>;
  groups: Map<string, Group>;
  /** Requests of groups beyond the most that are kept apart. */
  others: number;
  /** Those that another rule would allow, or that would be refused for another reason. */
  otherwise: number;
};

export const emptyTally = (): Tally => ({
  same: 0,
  differing: new Map(),
  differs: [],
  apart: new Map(),
  groups: new Map(),
  others: 0,
  otherwise: 0,
});

export const count = (counts: Map<string, number>, key: string): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);

export function addDiffering(tally: Tally, members: readonly string[], example: Example): void {
  count(tally.differing, members.join(", "));
  if (tally.differs.length < EXAMPLES_MAX) tally.differs.push(example);
}

/** The new outcome of a request beside the recorded one. */
export function addChange(tally: Tally, members: readonly (keyof DecisionOutcome)[], example: Example): void {
  const { was, is, event } = example;
  const change = changeOf(was, is, members);
  if (change === undefined) {
    if (members.length > 0) tally.otherwise++;
    return;
  }
  const rule = (change === "refused" ? was.rule : is.rule) ?? "";
  const caller = event.client?.workload ?? event.client?.client_id ?? "";
  const key = JSON.stringify([change, rule, caller]);
  const group = tally.groups.get(key);
  if (group !== undefined) {
    group.count++;
    if (group.examples.length < EXAMPLES_OF_GROUP) group.examples.push(example);
  } else if (tally.groups.size < GROUPS_MAX) {
    tally.groups.set(key, { change, rule, caller, count: 1, examples: [example] });
  } else tally.others++;
}

const EXAMPLES_OF_GROUP = 3;

function changeOf(
  was: DecisionOutcome,
  is: DecisionOutcome,
  members: readonly (keyof DecisionOutcome)[],
): Flip | undefined {
  if (was.outcome !== is.outcome) return is.outcome === "allow" ? "allowed" : "refused";
  const given: readonly string[] = ["scope", "details", "exp"];
  return members.some((one) => given.includes(one)) ? "changed" : undefined;
}
