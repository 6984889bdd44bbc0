/** Texts about wrong members for the person who wrote them, in place of those of the schema library. */
import * as v from "valibot";

/** Whether the issue is a member that the schema does not know. */
export const isUnknownName = ({ expected }: v.BaseIssue<unknown>): boolean => expected === "never";

/** `path: text` for one issue; `whole` stands for the path of the whole input. */
export function describeIssue(issue: v.BaseIssue<unknown>, whole = ""): string {
  const path = v.getDotPath(issue) ?? whole;
  // The schema library's own texts, which are for programmers, begin like this.
  const text = issue.message.startsWith("Invalid ") ? operatorText(issue) : issue.message;
  return `${path}: ${whole === "" ? text : text.replace("setting", "member")}`;
}

/** The names of members that are files, wherever they stand. */
const FILES: readonly string[] = ["key", "cert", "ca"];

function operatorText(issue: v.BaseIssue<unknown>): string {
  const { type, expected, received, requirement, message, path, input } = issue;
  if (isUnknownName(issue)) {
    const { allow, method } = Object(path?.at(-1)?.input);
    if (typeof allow === "string") return `is not a setting of a rule with "allow": ${JSON.stringify(allow)}`;
    if (typeof method === "string")
      return `is not a setting of a client with "method": ${JSON.stringify(method)}`;
    return "is not a known setting";
  }
  if (received === "undefined") return "is missing";
  if (expected === "Object") {
    const isFile = FILES.includes(String(path?.at(-1)?.key));
    return isFile ? 'is not of the form { "file": … }' : "is not an object";
  }
  switch (type) {
    case "string":
      return `is not a string${typeof input === "number" ? ": put it into quotes" : ""}`;
    case "number":
      return `is not a number${typeof input === "string" ? unquoted(input) : ""}`;
    case "boolean":
      return `is neither true nor false${input === "true" || input === "false" ? NO_QUOTES : ""}`;
    case "array":
      return `is not an array${typeof input === "string" ? ": put it into [ ]" : ""}`;
    case "literal":
    case "picklist":
    case "variant":
      return `is not one of ${expected?.replace(/[()]/g, "").replaceAll(" | ", ", ")}`;
    case "integer":
      return "is not a whole number: leave the fraction out";
    case "min_value":
      return `is less than ${requirement}`;
    case "max_value":
      return `is more than ${requirement}`;
    case "non_empty":
    case "min_length":
      return "is empty";
    case "regex":
      return `is not of the form ${expected}`;
    default:
      return message;
  }
}

const NO_QUOTES = ": leave the quotes out";

/** A number with a unit, such as "5m", is a frequent mistake. */
const unquoted = (input: string): string =>
  /^[0-9.]+$/.test(input)
    ? NO_QUOTES
    : ": write the number alone, in the unit that the name of the member ends in";
