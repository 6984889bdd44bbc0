/** A suggested change in words, for the people who write rules. */
import { defined } from "../result.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { type ChangePart, ON_THE_WIRE } from "./next-change.ts";
import type { Suggestion } from "./smallest-change.ts";

const WIRED: readonly ChangePart["at"][] = ["request", "client", "subject_token"];

/** What has no value to be shown. */
const WHOLE: Readonly<Record<string, string>> = {
  "request keys": "proves the key that is demanded",
  "request pushed": "is pushed before (RFC 9126)",
  "subject_token mayAct": "names this caller in may_act",
  "subject_token claims": "is of a subject with the claims that the rule demands",
  "subject_token expiresAtSeconds": "is valid for longer",
  "sign_in signIn": "signs in again, as the rule demands",
  "job approved": "is approved by the user",
  "job notAfterSeconds": "ends later",
  "client bindsBy": "does not demand bound tokens",
  "client endsAtSeconds": "proves itself by what is valid for longer",
};

const THINGS: Record<ChangePart["at"], string> = {
  request: "the request",
  consent: "the subject",
  subject_token: "the subject token",
  sign_in: "the user",
  job: "the job",
  client: "the client",
  rule: "rule",
  target: "target",
};

export function changeText({ at, of, path, adds, is }: ChangePart): string {
  const thing = of === undefined || at === "consent" ? THINGS[at] : `${THINGS[at]} ${JSON.stringify(of)}`;
  const whole = WHOLE[`${at} ${path.join(".")}`];
  if (whole !== undefined) return `${thing.replace(/^t/, "T")} ${whole}.`;
  if (at === "consent")
    return `The subject consents to ${JSON.stringify(adds)} for this caller at ${JSON.stringify(of)}.`;
  const [first = "", ...rest] = path;
  const member = [WIRED.includes(at) ? (ON_THE_WIRE[first] ?? first) : first, ...rest].join(".");
  if (adds !== undefined) return `Add ${JSON.stringify(adds)} to ${member} of ${thing}.`;
  return is === null
    ? `Leave ${member} out of ${thing}.`
    : `Set ${member} of ${thing} to ${JSON.stringify(is)}.`;
}

const MARK = "A suggestion, which is not applied and not told to the caller";

/** Marked as what it is: whether the request ought to be allowed is the operator's to say. */
export const formatSuggestion = (found: Suggestion | undefined): readonly string[] =>
  found === undefined
    ? ["No change of one rule, consent, token or registration would have allowed it."]
    : [
        `${MARK}: the smallest change that would have allowed it, by rule ${found.rule}:`,
        ...found.changes.map((one) => `  ${changeText(one)}`),
      ];

export const showSuggestion = (found: Suggestion | undefined): Json =>
  found === undefined
    ? null
    : {
        rule: found.rule,
        changes: found.changes.map((one) => {
          const { at, of, path, adds, is } = one;
          return defined<JsonObject>({ at, of, member: path.join("."), adds, is, text: changeText(one) });
        }),
      };
