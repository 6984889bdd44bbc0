/** What the policy looked at, in words for people. */
import type { Condition, Fallen, Trace } from "./ask.ts";

const CONDITIONS: Record<Condition, string> = {
  actor: "the caller's workload is not among its actors",
  target: "it is not for this target",
  subject_issuer: "the subject comes from an issuer that it does not name",
  subject: "the subject is none of those that it names",
  subject_token: "the subject token is not of a kind, audience or scope that lets this caller exchange it",
  consent: "the consent that it asks for is not there",
  chain_depth: "the chain of actors would be too long",
  lifetime: "the subject token ends too soon",
  scope: "nothing of the scope is left",
};

const SIDES: Record<Fallen["at"], string> = {
  client: "the client is not registered for it",
  subject_token: "the subject token does not have it",
  rule: "the rule does not give it",
  target: "the target does not know it",
  consent: "the consent does not cover it",
};

/** One line for each rule and for each scope that fell; of the question it repeats nothing but scopes. */
export function tellTrace(trace: Trace): readonly string[] {
  if (trace.length === 0) return ["No rule was looked at for this caller and target."];
  return trace.flatMap(({ rule, failed, fallen = [] }) => [
    `Rule ${rule}: ${failed === undefined ? "allows this." : `no, ${CONDITIONS[failed]}.`}`,
    ...fallen.map(({ scope, at }) => `  Scope ${scope} falls: ${SIDES[at]}.`),
  ]);
}
