/**
 * Bound tokens: which key an issued token is bound to (RFC 8705 3, RFC 9449 5), and whether a caller proved the key
 * that a token it presents is bound to.
 */
import { TOKEN_SECONDS_MIN } from "../limits/tokens.ts";
import { staysInside } from "../modes.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { BoundTo, Confirmation } from "../spec/rfc7800.ts";
import type { AccessRequest, ProvenKeys } from "./access.ts";
import type { Rule, Target } from "./rules.ts";

/** What a token has to be bound by, for its target, its client or the token behind it; "any": by either. */
type Demand = Target["binding"];

export type Bound = {
  demand: Demand;
  /** Absent if nothing demands a binding, or if what is demanded is only assumed to be proven. */
  confirmation?: Confirmation;
  /** RFC8705-6.3-1: a token is of no use after the end of the certificate, so it ends then too. */
  endsAtSeconds?: number;
};

type BindingFailure = "binding" | "binding_conflict";

export function bind(access: AccessRequest, rule: Rule, target: Target): Result<Bound, BindingFailure> {
  // TXN-D-3: what it was made of had to be proven; the token itself is used as it is, as its draft has no binding.
  if (target.transaction !== undefined) return ok({ demand: "none" });
  const demand = demandOf(access, rule, target);
  if (demand === undefined) return err("binding_conflict");
  if (access.keys === "assumed") return ok({ demand });
  const { jkt, certificate } = access.keys ?? {};
  // RFC7800-3.1-v1: one key for a token. RFC9449-5-1: a proof binds wherever it is sent, before a certificate does.
  if (jkt !== undefined) {
    return demand === "certificate" ? err("binding_conflict") : ok({ demand, confirmation: { jkt } });
  }
  // SVIDs are renewed within the hour, so a token is bound to a certificate only where that is asked for.
  if (demand === "none") return ok({ demand });
  if (demand === "dpop" || certificate === undefined) return err("binding");
  const { x5t, notAfterSeconds: endsAtSeconds } = certificate;
  if (endsAtSeconds - access.nowSeconds < TOKEN_SECONDS_MIN) return err("binding");
  return ok(defined<Bound>({ demand, confirmation: { "x5t#S256": x5t }, endsAtSeconds }));
}

/** Undefined if the client and the target demand what excludes each other. */
function demandOf({ subject, bindsBy = [] }: AccessRequest, rule: Rule, target: Target): Demand | undefined {
  // RFC9449-5.2-1: such a client gets no token without a proof, and no grant either.
  if (bindsBy.includes("dpop")) return target.binding === "certificate" ? undefined : "dpop";
  if (target.binding !== "none") return target.binding;
  const inherits = subject?.boundTo !== undefined && !isUnbound(rule);
  // IDJAG-9.9-2: a grant can only be bound by a proof.
  if (target.partner !== undefined) return inherits ? "dpop" : "none";
  // RFC8705-3.4-2: without a certificate such a client gets no token.
  return inherits || bindsBy.includes("certificate") ? "any" : "none";
}

/** What the metadata of a client demand of its tokens for this target, whatever the target itself demands. */
export function demandOfClient(bindsBy: AccessRequest["bindsBy"] = [], target: Target): Demand {
  const { partner, transaction } = target;
  if (transaction !== undefined) return "none";
  if (bindsBy.includes("dpop")) return "dpop";
  return bindsBy.includes("certificate") && partner === undefined ? "any" : "none";
}

/** Whether a token that is bound to this key, or to none, is what is demanded. */
export function meets(demand: Demand, confirmation: Confirmation | undefined): boolean {
  if (demand === "none") return true;
  if (confirmation === undefined) return false;
  return demand === "any" || demand === ("jkt" in confirmation ? "dpop" : "certificate");
}

/** Whether the rule lets an unbound token come out of a bound one. */
export const isUnbound = (rule: Rule): boolean =>
  staysInside(rule.allow) || ("unbound" in rule && rule.unbound === true);

/** Whether the key that a token is bound to is among the proven ones; one that is unknown never is. */
export function isProven(boundTo: BoundTo, { jkt, certificate }: ProvenKeys): boolean {
  if (boundTo === "unknown") return false;
  return "jkt" in boundTo ? boundTo.jkt === jkt : boundTo["x5t#S256"] === certificate?.x5t;
}
