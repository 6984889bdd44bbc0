/** The policy of the configuration: its rules and targets, compiled and checked, and their digest. */
import { createHash } from "node:crypto";
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
): Result<{ policy: PolicySet; warnings: readonly string[] }, readonly string[]> {
  const { issuer, targets, policies } = config;
  const digest = createHash("sha256")
    .update(canonicalize({ targets, policies } as unknown as Json))
    .digest("hex");
  const policy = compilePolicy(policies, [...targets, apiTarget(issuer)], issuer, `sha256:${digest}`);
  if (!policy.ok) return policy;
  const { problems, warnings } = checkPolicy(policy.value, policies, config);
  return problems.length > 0 ? err(problems) : ok({ policy: policy.value, warnings });
}
