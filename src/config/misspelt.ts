/** Members of the configuration file that are like one that the schema knows. */
import type * as v from "valibot";
import { isUnknownName } from "../policy/messages.ts";
import { nearest } from "../policy/nearest.ts";
import { membersOf } from "../setting.ts";
import { ConfigFile } from "./schema.ts";

/** The path of the member that an unknown one is like, if there is one. */
export function meantBy(issue: v.BaseIssue<unknown>): string | undefined {
  if (!isUnknownName(issue)) return undefined;
  const names = (issue.path ?? []).map(({ key }) => String(key));
  const [name = ""] = names.splice(-1);
  const beside = membersOf(ConfigFile).flatMap(({ path }) => {
    const parts = path.split(".");
    const [last = ""] = parts.splice(-1);
    const isBeside =
      parts.length === names.length && parts.every((one, at) => one === "*" || one === names[at]);
    return isBeside ? [last] : [];
  });
  const found = nearest(name, beside);
  return found === undefined ? undefined : [...names, found].join(".");
}
