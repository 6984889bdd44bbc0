/** Prints the differences between two policies, merged into as few blocks as possible. */
import { matchesPattern } from "../../spec/spiffe/id.ts";
import type { Comparison, Difference, PolicyChange } from "./diff.ts";
import { formatAnswer } from "./vectors.ts";

type Block = { [Name in keyof Difference["facts"]]: readonly string[] };

/** Blocks that differ only in one of these members are merged, in this order. */
const MERGED = ["scope", "target", "token", "earlier", "caller", "subject", "note"] as const;

const TITLES: Record<PolicyChange, string> = {
  allowed: "Newly allowed:",
  denied: "Newly denied:",
  wider: "Allowed with wider authorization_details:",
  narrower: "Allowed with narrower authorization_details:",
  longer: "Allowed with a longer lifetime:",
  shorter: "Allowed with a shorter lifetime:",
};

export function formatDifferences({ asked, cut, differences, vectors }: Comparison): readonly string[] {
  const lines: string[] = [];
  for (const change of ["allowed", "denied", "wider", "narrower", "longer", "shorter"] as const) {
    const found = differences.filter((one) => one.change === change);
    if (found.length === 0) continue;
    lines.push(TITLES[change], ...merge(found).flatMap(formatBlock), "");
  }
  if (vectors.length > 0) {
    lines.push("Vectors with a changed answer:");
    for (const { name, before, after } of vectors) {
      lines.push(`  ${name}`, `    was   ${formatAnswer(before)}`, `    is    ${formatAnswer(after)}`);
    }
    lines.push("");
  }
  if (lines.length === 0) lines.push("Nothing is newly allowed or denied.");
  if (asked === 0)
    return [
      ...lines,
      "No question was compared: no rule differs, or no question can be derived from a rule that differs.",
    ];
  lines.push(`Questions compared: ${asked}${cut ? "; the remaining questions were not compared" : ""}.`);
  return lines;
}

/** The comparison for programs; `complete` is false if there were more questions than were compared. */
export const showComparison = ({ asked, cut, differences, vectors }: Comparison) => ({
  asked,
  complete: !cut,
  differences: differences.map(({ change, facts }) => ({ change, ...facts })),
  vectors: vectors.map(({ name, before, after }) => ({
    name,
    was: formatAnswer(before),
    is: formatAnswer(after),
  })),
});

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

function formatBlock(block: Block): readonly string[] {
  const { mode, rule, caller, subject, token, earlier, target, scope, note } = block;
  const line = (title: string, values: readonly string[], between = ", "): readonly string[] => {
    const text = values.filter((one) => one !== "").join(between);
    return text === "" ? [] : [`    ${title.padEnd(8)}${text}`];
  };
  return [
    `  ${mode.join()} by rule ${rule.join()}`,
    ...line("caller", broadest(caller)),
    ...line("subject", broadestSubjects(subject), "; "),
    ...line("token", token, "; "),
    ...line("chain", isChained(earlier) ? [`earlier actors: ${earlier.join(" or ")}`] : []),
    ...line("target", target),
    ...line("scope", scope, " "),
    ...line("note", note),
  ];
}

const isChained = (earlier: readonly string[]): boolean => earlier.some((hops) => Number(hops) > 0);

/** Leaves out names that another name in the list covers. */
const broadest = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !names.some((other) => other !== name && matchesPattern(other, name)));

const ANY = "any subject";

const broadestSubjects = (texts: readonly string[]): readonly string[] =>
  texts.filter((text) => {
    const covers = (other: string): boolean =>
      other.startsWith(ANY) && text.endsWith(other.slice(ANY.length));
    return !texts.some((other) => other !== text && covers(other));
  });
