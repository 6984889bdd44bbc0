/** Checks of a policy (clauses PROD-2.6) on bound tokens: members that are wide, that have no effect, or that exclude all tokens. */
import { isUnbound } from "./binding.ts";
import { type PolicySet, type Rule, targetsOf } from "./rules.ts";

/** Each text is the rest of one that begins with the rule. */
export function* warnOfBinding(policy: PolicySet, rule: Rule): Generator<string> {
  if (isUnbound(rule)) {
    if (targetsOf(policy, rule).every(({ binding }) => binding !== "none")) {
      yield 'has "unbound" without effect: all of its targets demand bound tokens';
    } else {
      yield 'issues unbound tokens in exchange for bound ones: remove "unbound" unless a target cannot check keys';
    }
  }
  if (!("boundSubject" in rule) || rule.boundSubject !== "audience") return;
  const { audiences = [], scopes } = rule.subjectToken;
  if (scopes === undefined && audiences.every((name) => name === policy.issuer)) {
    yield 'has "boundSubject" without effect: a token for this server names no caller as its audience';
  }
}

/** The names of targets that demand a proof which is never accepted. */
export function targetsWithoutTokens({ targets }: PolicySet, isDpopOn: boolean): readonly string[] {
  if (isDpopOn) return [];
  const demanding = [...new Set(targets.values())].filter(({ binding }) => binding === "dpop");
  return demanding.map(({ names: [name = ""] }) => name);
}
