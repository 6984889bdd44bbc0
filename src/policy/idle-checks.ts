/** Checks of a policy (clauses PROD-2.6) for people: targets and providers that no rule leads to. */
import { hasSubject, isFor, type PolicySet, type Rule, targetsOf } from "./rules.ts";

type Providers = { readonly [name: string]: { issuer: string } };

/** What an operator prepared for people and no rule uses: users would sign in, and be offered nothing. */
export function* warnOfIdle(
  policy: PolicySet,
  rules: readonly Rule[],
  providers: Providers = {},
): Generator<string> {
  const asked = new Set(
    rules.filter((rule) => isFor(rule, "code")).flatMap((rule) => targetsOf(policy, rule)),
  );
  const forPeople = [...new Set(policy.targets.values())].filter(({ people }) => people);
  for (const { names } of forPeople.filter((target) => !asked.has(target))) {
    yield `targets: ${JSON.stringify(names[0])} is marked "people": true, but no rule with "allow": "authorization_code" names it: add that rule, or remove the mark`;
  }
  const issuers = new Set(rules.flatMap((rule) => (hasSubject(rule) ? rule.subjects.issuers : [])));
  for (const [name, { issuer }] of Object.entries(providers)) {
    if (issuers.has(issuer)) continue;
    yield `signIn.providers.${name}: its users sign in for nothing, because no rule has ${JSON.stringify(issuer)} in subjects.issuers: add that rule, or remove the provider`;
  }
}
