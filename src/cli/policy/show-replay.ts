/** The result of `mandate policy replay`, for people and for programs. */

import { targetIn } from "../../audit/uses.ts";
import type { DecisionOutcome } from "../../policy/replay.ts";
import { inLanguage } from "../../policy/worded.ts";
import { defined } from "../../result.ts";
import { inWords, namingOf } from "../../settings/agents.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { word } from "../text.ts";
import type { Example, Flip, Group, Tally } from "./tally.ts";

type Tried = Pick<Settings, "agents" | "policy">;

const TITLES: Record<Flip, string> = {
  refused: "Would be refused:",
  allowed: "Would be allowed:",
  changed: "Would be allowed otherwise (scope, authorization_details or lifetime):",
};
const CHANGES = Object.keys(TITLES) as Flip[];

const sumOf = (counts: Iterable<number>): number => [...counts].reduce((sum, one) => sum + one, 0);

/** The largest groups first. */
const groupsOf = ({ groups }: Tally, change: Flip): readonly Group[] =>
  [...groups.values()].filter((one) => one.change === change).sort((a, b) => b.count - a.count);

const ofChange = (tally: Tally, change: Flip): number =>
  sumOf(groupsOf(tally, change).map(({ count }) => count));

/** Whether anything that a caller notices is otherwise. */
export const isOtherwise = ({ differing, groups, others }: Tally): boolean =>
  differing.size > 0 || groups.size > 0 || others > 0;

export function formatTally(tally: Tally, tried: Tried | undefined): readonly string[] {
  const differs = sumOf(tally.differing.values());
  const lines = [
    `Decided again: ${tally.same + differs} requests, ${tally.same} came out the same, ${differs} did not.`,
  ];
  for (const [members, number] of tally.differing) lines.push(`  ${number} differ in ${members}`);
  for (const one of tally.differs) lines.push(...exampleLines(one, undefined));
  for (const [why, number] of tally.apart) lines.push(`Not decided again: ${number}, ${why}.`);
  if (tried === undefined) return lines;
  const [refused, allowed, changed] = CHANGES.map((change) => ofChange(tally, change));
  lines.push(
    `By the new policy: ${refused} requests would be refused, ${allowed} would be allowed, ${changed} would get something else.`,
  );
  if (tally.otherwise > 0)
    lines.push(
      `${tally.otherwise} would come out the same by another rule, or be refused for another reason.`,
    );
  if (tally.others > 0)
    lines.push(`${tally.others} more would come out otherwise, in groups too many to list.`);
  for (const change of CHANGES) {
    const groups = groupsOf(tally, change);
    if (groups.length > 0) lines.push(TITLES[change]);
    for (const { rule, caller, count, examples } of groups) {
      lines.push(`  rule ${word(rule)}, ${named(tried, caller)}: ${count}`);
      for (const one of examples) lines.push(...exampleLines(one, tried));
    }
  }
  return lines;
}

/** NAME-D-1: the operator's title stands before the id. */
function named({ agents }: Pick<Tried, "agents">, id: string): string {
  const naming = namingOf(agents, id);
  return naming === undefined ? word(id) : `${JSON.stringify(inWords(naming, ["en"]).title)} (${word(id)})`;
}

export function targetNamed({ policy }: Pick<Tried, "policy">, name: string): string {
  const { title } = policy.targets.get(name) ?? {};
  return title === undefined ? word(name) : `${JSON.stringify(inLanguage(title, ["en"]))} (${word(name)})`;
}

const inShort = ({ outcome, reason, rule, scope, details }: DecisionOutcome): string =>
  outcome === "deny"
    ? `denied: ${reason}`
    : `allowed by ${word(rule ?? "")}, scope ${word(scope ?? "")}${details === undefined ? "" : `, details ${details}`}`;

function exampleLines(one: Example, tried: Tried | undefined): readonly string[] {
  const { event, was, is } = one;
  const subject = event.subject && ` for ${word(event.subject.sub)} of ${word(event.subject.iss)}`;
  const name = targetIn(event) ?? "";
  const target = name === "" ? "" : ` at ${tried === undefined ? word(name) : targetNamed(tried, name)}`;
  const request = event.request?.id === undefined ? "" : `, request ${word(event.request.id)}`;
  return [
    `    ${event.time}${request}: ${event.mode}${subject ?? ""}${target}`,
    `      was ${inShort(was)}`,
    `      is  ${inShort(is)}`,
  ];
}

// --- for programs -----------------------------------------------------------------------------------------------

const showExample = ({ event, was, is }: Example): JsonObject =>
  defined<JsonObject>({
    id: event.id,
    time: event.time,
    request: event.request?.id,
    mode: event.mode,
    client: event.client?.client_id,
    subject: event.subject && { iss: event.subject.iss, sub: event.subject.sub },
    was: { ...was },
    is: { ...is },
  });

export function showTally(tally: Tally, tried: Tried | undefined): JsonObject {
  const groups = CHANGES.flatMap((change) => groupsOf(tally, change)).map(
    ({ change, rule, caller, count, examples }): JsonObject => {
      const naming = tried && namingOf(tried.agents, caller);
      const title = naming && inWords(naming, ["en"]).title;
      return defined<JsonObject>({ change, rule, caller, title, count, examples: examples.map(showExample) });
    },
  );
  const counts = Object.fromEntries(CHANGES.map((change) => [change, ofChange(tally, change)]));
  const { same, differing, differs, apart, otherwise, others } = tally;
  return defined<JsonObject>({
    same,
    different: sumOf(differing.values()),
    differing: Object.fromEntries(differing),
    differs: differs.map(showExample),
    apart: Object.fromEntries(apart),
    with: tried && { digest: tried.policy.digest, ...counts, otherwise, unlisted: others, groups },
  });
}
