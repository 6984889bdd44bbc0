/** The policy of the configuration: its rules and targets, compiled and checked, and their digest. */
import { createHash } from "node:crypto";
import { policyText, type WrittenPolicy } from "../policy/archive.ts";
import { checkPolicy, type Findings } from "../policy/checks.ts";
import { apiTarget } from "../policy/own-target.ts";
import { compilePolicy, type PolicySet } from "../policy/rules.ts";
import { err, ok, type Result } from "../result.ts";
import type { ConfigFile } from "./schema.ts";

/** Builds the policy set of rules and targets, and checks it. */
export function readPolicy(
  config: ConfigFile,
): Result<{ policy: PolicySet; found: Pick<Findings, "warnings"> }, readonly string[]> {
  const { issuer, policies } = config;
  const targets = [...config.targets, apiTarget(issuer)];
  const policy = compilePolicy(policies, targets, issuer, digestOf({ issuer, policies, targets }));
  if (!policy.ok) return policy;
  const found = checkPolicy(policy.value, policies, config);
  return found.problems.length > 0 ? err(found.problems) : ok({ policy: policy.value, found });
}

/** The text is as large as the file, so it is digested part by part. */
function digestOf(written: WrittenPolicy): string {
  const hash = createHash("sha256");
  for (const part of policyText(written)) hash.update(part);
  return `sha256:${hash.digest("hex")}`;
}
