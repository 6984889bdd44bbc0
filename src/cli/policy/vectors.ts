/** Test vectors of a policy: questions, each with the expected answer. */
import * as v from "valibot";
import { readJsonFile } from "../../config/json-file.ts";
import { type Explanation, formatExplanation } from "../../flows/explain.ts";
import { detailObjects } from "../../policy/detail-types.ts";
import { describeIssue } from "../../policy/messages.ts";
import { parseQuestion } from "../../policy/question.ts";
import { isClassName } from "../../policy/rule-members.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { isSameDetails } from "../../spec/rfc9396.ts";
import { answer, type Scenario } from "./answer.ts";
import { formatReach, type NeverResult, showReach } from "./reach.ts";

const text = v.pipe(v.string(), v.nonEmpty("is empty"));
const scopes = v.pipe(
  text,
  v.check((scope) => parseScope(scope).ok, "is not a list of scopes separated by single spaces"),
  v.transform((scope) => scope.split(" ")),
);

const Asked = v.pipe(
  v.strictObject({
    name: text,
    ask: v.custom<Json>((value) => typeof value === "object", "is not an object"),
    consents: v.optional(
      v.array(v.strictObject({ targets: v.array(text), scope: scopes, details: v.optional(detailObjects) })),
      [],
    ),
    /** The class of a client that registered itself. */
    class: v.optional(
      v.pipe(
        v.string(),
        v.check((name) => isClassName(name), "is not a class name (lower-case letters, digits, hyphens)"),
      ),
    ),
    expect: v.picklist(["allow", "deny"]),
    scope: v.optional(scopes),
    /** The details of the token; an empty list for none. */
    details: v.optional(v.union([v.pipe(v.array(v.never()), v.maxLength(0)), detailObjects])),
    rule: v.optional(text),
  }),
  v.check(
    ({ expect, scope, details, rule }) => expect === "allow" || (scope ?? details ?? rule) === undefined,
    "scope, details and rule can only be expected together with allow",
  ),
);

/** REACH-D-8: what no order of requests may lead to. */
const Never = v.strictObject({ name: text, never: v.strictObject({ actor: text, target: text }) });

// The message of a problem is that of the kind of entry, which `never` tells.
const File = v.array(
  v.lazy((entry) => (typeof entry === "object" && entry !== null && "never" in entry ? Never : Asked)),
);

type Expected = Pick<v.InferOutput<typeof Asked>, "expect" | "scope" | "details" | "rule">;

export type Vector = Expected & { name: string; scenario: Scenario };
export type Vectors = { asked: readonly Vector[]; never: readonly v.InferOutput<typeof Never>[] };

/** Reads the vectors, or returns every problem with its path. */
export function readVectors(path: string): Result<Vectors, readonly string[]> {
  const json = readJsonFile(path);
  if (!json.ok) return err([json.error]);
  const parsed = v.safeParse(File, json.value);
  if (!parsed.success) {
    return err(parsed.issues.map((issue) => describeIssue(issue, "the file")));
  }
  const problems: string[] = [];
  const never: Vectors["never"][number][] = [];
  const asked = parsed.output.flatMap((entry, index): Vector[] => {
    if ("never" in entry) {
      never.push(entry);
      return [];
    }
    const { name, ask, consents, class: registrationClass, ...expected } = entry;
    const question = parseQuestion(ask);
    if (question.ok) {
      const given = consents.map(({ targets, scope, details }) =>
        defined<Scenario["consents"][number]>({ targets, scopes: scope, details }),
      );
      const scenario = defined<Scenario>({ question: question.value, consents: given, registrationClass });
      return [{ ...expected, name, scenario }];
    }
    problems.push(...question.error.map((problem) => `${index}.ask.${problem}`));
    return [];
  });
  return problems.length > 0 ? err(problems) : ok({ asked, never });
}

type VectorResult = { vector: Vector; got: Explanation; wrong?: string };

export async function runVectors(
  settings: Settings,
  vectors: readonly Vector[],
): Promise<readonly VectorResult[]> {
  const results: VectorResult[] = [];
  for (const vector of vectors) {
    const got = await answer(settings, vector.scenario);
    const wrong = differs(vector, got);
    results.push(defined<VectorResult>({ vector, got, wrong }));
  }
  return results;
}

function differs({ expect, scope, details, rule }: Expected, { issued }: Explanation): string | undefined {
  if ((expect === "allow") !== (issued !== undefined)) return expect;
  if (issued === undefined) return undefined;
  if (rule !== undefined && rule !== issued.rule) return `by rule ${rule}`;
  // RFC6749-3.3-1: the order of scopes is not significant.
  const sorted = (list: readonly string[]): string => [...new Set(list)].sort().join(" ");
  if (scope !== undefined && sorted(scope) !== sorted(scopeOf(issued.claims.scope))) {
    return `scope ${scope.join(" ")}`;
  }
  const wanted = details?.length === 0 ? undefined : details;
  if (details !== undefined && !isSameDetails(issued.claims.authorization_details, wanted)) {
    return `details ${JSON.stringify(details)}`;
  }
  return undefined;
}

const scopeOf = (scope: Json | undefined): readonly string[] =>
  typeof scope === "string" ? scope.split(" ") : [];

/** The answer in one line: `allow` with rule, scope and lifetime, or `deny` with the reason. */
export function formatAnswer({ issued, failure }: Explanation): string {
  if (issued === undefined) return `deny   ${failure?.reason ?? "no_rule"}`;
  const { scope, exp, iat } = issued.claims;
  return `allow  by rule ${issued.rule}: ${scopeOf(scope).join(" ")}, ${Number(exp) - Number(iat)} s`;
}

/** The result of one vector for programs. */
export const showVector = ({ vector, got, wrong }: VectorResult) => ({
  name: vector.name,
  passed: wrong === undefined,
  answer: got.issued === undefined ? "deny" : "allow",
  explanation: formatExplanation(got),
});

/** The same for what must never be reached. */
export const showNever = ({ name, answer }: NeverResult) => ({
  name,
  passed: answer.grants.length === 0,
  ...showReach(answer),
});

export function formatVectors(
  results: readonly VectorResult[],
  never: readonly NeverResult[],
): readonly string[] {
  const names = [...results.map(({ vector }) => vector.name), ...never.map(({ name }) => name)];
  const width = Math.max(0, ...names.map((name) => name.length));
  const line = (isGood: boolean, name: string, answer: string): string =>
    `${isGood ? "ok  " : "FAIL"}  ${name.padEnd(width)}  ${answer}`;
  const inset = (words: string): string => `      ${words}`;
  const lines = results.flatMap(({ vector, got, wrong }) => {
    const told = line(wrong === undefined, vector.name, formatAnswer(got));
    if (wrong === undefined) return [told];
    return [told, `      expected: ${wrong}`, ...formatExplanation(got).map(inset)];
  });
  const paths = never.flatMap(({ name, answer }) => {
    const isGood = answer.grants.length === 0;
    const told = line(isGood, name, isGood ? "never reached" : "reached");
    return isGood ? [told] : [told, ...formatReach(answer).map(inset)];
  });
  const passed =
    results.filter(({ wrong }) => wrong === undefined).length +
    never.filter(({ answer }) => answer.grants.length === 0).length;
  return [...lines, ...paths, `${passed} of ${names.length} vectors passed.`];
}
