/** What the caller is told of a decision that gives it nothing, by the way in which its request came. */
import type { Reason } from "../../audit/reasons.ts";
import { MODES, redeems } from "../../modes.ts";
import type { Denied } from "../../policy/access.ts";
import type { FinalFailure } from "../refusal.ts";
import type { Order } from "./order.ts";

/** The failure that the caller is told of a decision, by the grant type that it used. */
export function toFailure(
  { access: { mode }, manner: { targetFromGrant, sentAs, refusedAs } }: Pick<Order, "access" | "manner">,
  { kind, reason }: { kind: Denied["kind"] | "token_refused"; reason: Reason },
): FinalFailure {
  if (refusedAs !== undefined) return { kind: refusedAs, reason };
  // RFC6749-5.2-7: no rule lets this client have tokens of its own at all.
  if (MODES[mode].brings === "nothing" && sentAs === undefined && reason === "no_rule")
    return { kind: "client_unauthorized", reason };
  // IDC-2.4.2-5: a denial by the policy is an invalid grant; EMA-7.6.2-1: so is a target that only the grant names.
  // IDJAG-9.9-6: so is a missing proof; a proof that the target excludes is not the grant's fault.
  const others = kind === "scope_refused" || kind === "details_refused" || reason === "binding_excluded";
  const ofGrant = kind === "target_refused" ? targetFromGrant : !others;
  // RFC6749-5.2-6: so is a code whose consent or rule is gone since it was issued.
  // WAG-7-1: and so is the grant of a workload to which no rule gives anything.
  return { kind: (redeems(mode) || sentAs === "grant") && ofGrant ? "grant_refused" : kind, reason };
}
