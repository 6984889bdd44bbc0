/** Test vectors of a policy: questions, each with the expected answer. */
import * as v from "valibot";
import { readJsonFile } from "../../config/json-file.ts";
import type { Explanation } from "../../flows/explain.ts";
import { formatExplanation } from "../../flows/explain.ts";
import { detailObjects } from "../../policy/detail-types.ts";
import { describeIssue } from "../../policy/messages.ts";
import { parseQuestion } from "../../policy/question.ts";
import { isClassName } from "../../policy/rule-members.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { isSameDetails } from "../../spec/rfc9396.ts";
import type { Scenario } from "./answer.ts";
import { answer } from "./answer.ts";

const text = v.pipe(v.string(), v.nonEmpty("is empty"));
const scopes = v.pipe(
  text,
  v.check((scope) => parseScope(scope).ok, "is not a list of scopes separated by single spaces"),
  v.transform((scope) => scope.split(" ")),
);

const File = v.array(
  v.pipe(
    v.strictObject({
      name: text,
      ask: v.custom<Json>((value) => typeof value === "object", "is not an object"),
      consents: v.optional(
        v.array(
          v.strictObject({ targets: v.array(text), scope: scopes, details: v.optional(detailObjects) }),
        ),
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
  ),
);

type Expected = Pick<v.InferOutput<typeof File>[number], "expect" | "scope" | "details" | "rule">;

export type Vector = Expected & { name: string; scenario: Scenario };

/** Reads the vectors, or returns every problem with its path. */
export function readVectors(path: string): Result<readonly Vector[], readonly string[]> {
  const json = readJsonFile(path);
  if (!json.ok) return err([json.error]);
  const parsed = v.safeParse(File, json.value);
  if (!parsed.success) {
    return err(parsed.issues.map((issue) => describeIssue(issue, "the file")));
  }
  const problems: string[] = [];
  const vectors = parsed.output.flatMap(
    ({ name, ask, consents, class: registrationClass, ...expected }, index): Vector[] => {
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
    },
  );
  return problems.length > 0 ? err(problems) : ok(vectors);
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

export function formatVectors(results: readonly VectorResult[]): readonly string[] {
  const width = Math.max(0, ...results.map(({ vector }) => vector.name.length));
  const lines = results.flatMap(({ vector, got, wrong }) => {
    const line = `${wrong === undefined ? "ok  " : "FAIL"}  ${vector.name.padEnd(width)}  ${formatAnswer(got)}`;
    if (wrong === undefined) return [line];
    return [line, `      expected: ${wrong}`, ...formatExplanation(got).map((words) => `      ${words}`)];
  });
  const passed = results.filter(({ wrong }) => wrong === undefined).length;
  return [...lines, `${passed} of ${results.length} vectors passed.`];
}
