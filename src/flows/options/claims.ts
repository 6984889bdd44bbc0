/** Groups and other claims of people: what their issuer says by now is what rules demand, and what rests on it ends with it. */
import { whenReady } from "../../result.ts";
import { claimsInForce, keysOfClaims } from "../subject-claims.ts";
import type { TokenOption } from "./option.ts";

export const claimsOption: TokenOption = {
  renew({ settings, facts }, order) {
    const { subject } = order.access;
    if (subject === undefined) return order;
    return whenReady(facts.claims(subject.origin), (word) => {
      const claims = claimsInForce(settings(), subject, word);
      if (claims === undefined) return order;
      return { ...order, access: { ...order.access, subject: { ...subject, claims } } };
    });
  },
  grant({ hash }, _order, { allowed: { rule }, asked: { subject } }, nowSeconds) {
    const { origin, claims } = subject ?? {};
    if (origin === undefined || typeof claims !== "object") return {};
    // PCL-D-9: an issuer whose clock is ahead dates no token out of reach of the next ending.
    const sinceSeconds = Math.min(claims.atSeconds, nowSeconds);
    const claimsKeys = keysOfClaims(hash.ofName, origin, rule, sinceSeconds);
    return { row: { claims }, ends: { claimsKeys } };
  },
};
