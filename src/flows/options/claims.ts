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
  grant({ hash }, _order, { allowed: { rule }, asked: { subject } }) {
    const { origin, claims } = subject ?? {};
    if (origin === undefined || typeof claims !== "object") return {};
    const claimsKeys = keysOfClaims(hash.ofName, origin, rule, claims.atSeconds);
    return { row: { claims }, ends: { claimsKeys } };
  },
};
