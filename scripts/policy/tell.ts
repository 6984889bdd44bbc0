/** The differences between two policies, as few blocks as they fit into. */
import { matchesPattern } from "../../src/spec/spiffe/id.ts";
import type { Change, Comparison, Difference } from "./diff.ts";
import { tellAnswer } from "./vectors.ts";

type Block = { [Name in keyof Difference["facts"]]: readonly string[] };

/** In this order what differs in one of them alone becomes one block. */
const MERGED = ["scope", "target", "token", "earlier", "who", "subject", "note"] as const;

const TITLES: Record<Change, string> = {
  allowed: "Newly allowed:",
  denied: "Newly denied:",
  lifetime: "Allowed as before, for another time:",
};

export function tellDifferences({ asked, cut, differences, vectors }: Comparison): readonly string[] {
  const lines: string[] = [];
  for (const change of ["allowed", "denied", "lifetime"] as const) {
    const found = differences.filter((one) => one.change === change);
    if (found.length === 0) continue;
    lines.push(TITLES[change], ...merge(found).flatMap(tellBlock), "");
  }
  if (vectors.length > 0) {
    lines.push("Vectors with another answer:");
    for (const { name, before, after } of vectors) {
      lines.push(`  ${name}`, `    was   ${tellAnswer(before)}`, `    is    ${tellAnswer(after)}`);
    }
    lines.push("");
  }
  if (lines.length === 0) lines.push("Nothing is newly allowed or denied.");
  lines.push(`Questions asked of both: ${asked}${cut ? "; there are more, which were not asked" : ""}.`);
  return lines;
}

function merge(differences: readonly Difference[]): readonly Block[] {
  let blocks = differences.map(({ facts }) => {
    const lists = Object.entries(facts).map(([name, value]) => [name, [value]]);
    return Object.fromEntries(lists) as Block;
  });
  for (const name of MERGED) {
    const alike = Map.groupBy(blocks, (block) => JSON.stringify({ ...block, [name]: [] }));
    blocks = [...alike.values()].flatMap((group) => {
      const [first] = group;
      const values = [...new Set(group.flatMap((block) => block[name]))];
      return first === undefined ? [] : [{ ...first, [name]: values }];
    });
  }
  return blocks;
}

function tellBlock(block: Block): readonly string[] {
  const { mode, rule, who, subject, token, earlier, target, scope, note } = block;
  const line = (title: string, values: readonly string[], between = ", "): readonly string[] => {
    const text = values.filter((one) => one !== "").join(between);
    return text === "" ? [] : [`    ${title.padEnd(8)}${text}`];
  };
  return [
    `  ${mode.join()} by rule ${rule.join()}`,
    ...line("who", broadest(who)),
    ...line("for", broadestSubjects(subject), "; "),
    ...line("token", token, "; "),
    ...line("chain", isChained(earlier) ? [`after ${earlier.join(" or ")} others`] : []),
    ...line("at", target),
    ...line("scope", scope, " "),
    ...line("now", note),
  ];
}

const isChained = (earlier: readonly string[]): boolean => earlier.some((hops) => Number(hops) > 0);

/** What another one of them stands for goes without saying. */
const broadest = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !names.some((other) => other !== name && matchesPattern(other, name)));

const ANY = "any subject";

const broadestSubjects = (texts: readonly string[]): readonly string[] =>
  texts.filter((text) => {
    const said = (other: string): boolean => other.startsWith(ANY) && text.endsWith(other.slice(ANY.length));
    return !texts.some((other) => other !== text && said(other));
  });
