/** Checks of a policy (clauses PROD-2.6) on `authorization_details`: objects of no type, demands that no target meets, limits that lapse. */
import { checkConforms } from "./details.ts";
import { meant } from "./nearest.ts";
import { lapsesOf, type PolicySet, type Rule, targetsOf } from "./rules.ts";

const quote = (text: string): string => JSON.stringify(text);

/** Each text is the rest of one that begins with the rule. */
export function* findDetailProblems(policy: PolicySet, rule: Rule): Generator<string> {
  const { details = [], demands = [] } = rule;
  if (details.length + demands.length === 0) return;
  const targets = targetsOf(policy, rule);
  const types = new Map(targets.flatMap((one) => [...one.details]));
  for (const one of details) {
    const conforms = checkConforms(types, [one]);
    if (conforms.ok) continue;
    const { kind, field = "" } = conforms.error;
    yield kind === "details_type_unknown"
      ? `has details of the type ${quote(one.type)}, which none of its targets declares`
      : `has details that do not conform to their type ${quote(one.type)}: ${quote(field)} ${WRONG[kind]}`;
  }
  for (const type of demands.filter((one) => !types.has(one))) {
    yield `can never grant anything: it demands details of the type ${quote(type)}, which none of its targets declares`;
  }
}

const WRONG = {
  details_field_unknown: "is no field of it",
  details_field_malformed: "has a value that its field does not take",
  details_field_missing: "is needed, and is missing",
};

export function* warnOfDetails(policy: PolicySet, rule: Rule): Generator<string> {
  const targets = targetsOf(policy, rule);
  for (const target of targets) {
    const lacking = rule.demands?.find((type) => !target.details.has(type));
    if (lacking === undefined) continue;
    yield `grants nothing at the target ${quote(target.names[0] ?? "")}, which does not declare the type ${quote(lacking)} that it demands`;
  }
  for (const type of lapsesOf(rule)) {
    if (!policy.details.has(type)) {
      yield `has ${quote(type)} in "lapses", which is no type that a target declares${meant(type, [...policy.details.keys()])}`;
      continue;
    }
    // RAR-D-6: the token for such a target is not limited any more by what its subject token was.
    yield targets.every(({ details }) => details.has(type))
      ? `has ${quote(type)} in "lapses" without effect: all of its targets declare the type`
      : `lets details of the type ${quote(type)} lapse: tokens for targets that do not declare it are not limited by them`;
  }
}

type Issuers = { readonly [name: string]: { details?: readonly string[] | undefined } };

/** RAR-D-7: what an issuer may say and no target understands; such a token would be refused. */
export function* warnOfForeignDetails({ details }: PolicySet, issuers: Issuers): Generator<string> {
  for (const [name, { details: types = [] }] of Object.entries(issuers)) {
    for (const type of types.filter((one) => !details.has(one))) {
      yield `trustedIssuers.${name}.details: names the type ${quote(type)}, which no target declares`;
    }
  }
}
