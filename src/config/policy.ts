/** The policy of the configuration: its rules and targets, compiled and checked, and their digest. */
import { createHash } from "node:crypto";
import type { Findings } from "../policy/checks.ts";
import { checkPolicy } from "../policy/checks.ts";
import { apiTarget } from "../policy/own-target.ts";
import type { PolicySet } from "../policy/rules.ts";
import { compilePolicy } from "../policy/rules.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Json } from "../spec/rfc8259.ts";
import { canonicalize } from "../spec/rfc8785.ts";
import type { ConfigFile } from "./schema.ts";

/** Builds the policy set of rules and targets, and checks it. */
export function readPolicy(
  config: ConfigFile,
): Result<{ policy: PolicySet; found: Pick<Findings, "warnings"> }, readonly string[]> {
  const { issuer, targets, policies } = config;
  const policy = compilePolicy(policies, [...targets, apiTarget(issuer)], issuer, digestOf(config));
  if (!policy.ok) return policy;
  const found = checkPolicy(policy.value, policies, config);
  return found.problems.length > 0 ? err(found.problems) : ok({ policy: policy.value, found });
}

/**
 * The digest of the canonical text of both, whose names are sorted (RFC8785-3.2.3-1). The text is as large as the file,
 * so it is digested entry by entry.
 */
function digestOf({ policies, targets }: Pick<ConfigFile, "policies" | "targets">): string {
  const hash = createHash("sha256");
  const add = (before: string, entries: readonly unknown[]): void => {
    hash.update(before);
    for (const [index, entry] of entries.entries()) {
      hash.update(`${index === 0 ? "" : ","}${canonicalize(entry as Json)}`);
    }
  };
  add('{"policies":[', policies);
  add('],"targets":[', targets);
  return `sha256:${hash.update("]}").digest("hex")}`;
}
