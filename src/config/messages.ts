/** Error texts about the configuration file for an operator, in place of those of the schema library. */
import * as v from "valibot";

/** Whether the issue is a member that the schema does not know. */
export const isUnknownName = ({ expected }: v.BaseIssue<unknown>): boolean => expected === "never";

/** `path: text` for one issue. */
export function describeIssue(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue);
  // The schema library's own texts, which are for programmers, begin like this.
  return `${path}: ${issue.message.startsWith("Invalid ") ? operatorText(issue) : issue.message}`;
}

/** The names of members that are files, wherever they stand. */
const FILES: readonly string[] = ["key", "cert", "ca"];

function operatorText(issue: v.BaseIssue<unknown>): string {
  const { type, expected, received, requirement, message, path } = issue;
  if (isUnknownName(issue)) {
    const { allow, method } = Object(path?.at(-1)?.input);
    if (typeof allow === "string") return `is not a setting of a rule with "allow": ${JSON.stringify(allow)}`;
    return typeof method === "string"
      ? `is not a setting of a client with "method": ${JSON.stringify(method)}`
      : "is not a known setting";
  }
  if (received === "undefined") return "is missing";
  if (expected === "Object") {
    const isFile = FILES.includes(String(path?.at(-1)?.key));
    return isFile ? 'is not of the form { "file": … }' : "is not an object";
  }
  switch (type) {
    case "string":
      return "is not a string";
    case "number":
      return "is not a number";
    case "boolean":
      return "is neither true nor false";
    case "array":
      return "is not an array";
    case "literal":
    case "picklist":
    case "variant":
      return `is not one of ${expected?.replace(/[()]/g, "").replaceAll(" | ", ", ")}`;
    case "integer":
      return "is not a whole number";
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
