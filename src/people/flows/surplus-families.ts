/** Of more families than one user may have for one client and target, those end that were used longest ago. */
import { describeFamily } from "../../flows/audit-fields.ts";
import { recordEnding } from "../../flows/endings.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { FAMILIES_MAX } from "../../limits/people.ts";
import { type BasePorts, StoreUnavailable } from "../../ports.ts";
import type { Family } from "../../records.ts";
import type { PeoplePorts } from "../ports.ts";
import { endOf } from "./judge-refresh.ts";

/**
 * This is done after the token is recorded: its code is used up, so a store that is lost now must not cost the client
 * what it was given. A family too many then ends with the next code.
 */
export async function endSurplus(
  ports: BasePorts & Pick<PeoplePorts, "families" | "journal">,
  request: AuditedRequest,
  of: Pick<Family, "clientId" | "origin" | "target">,
): Promise<void> {
  try {
    await endLongestUnused(ports, request, of);
  } catch (fault) {
    if (!(fault instanceof StoreUnavailable)) throw fault;
  }
}

async function endLongestUnused(
  ports: BasePorts & Pick<PeoplePorts, "families" | "journal">,
  request: AuditedRequest,
  { clientId, origin, target }: Pick<Family, "clientId" | "origin" | "target">,
): Promise<void> {
  const { policy, signIn } = ports.settings();
  if (signIn === undefined) return;
  const nowSeconds = ports.clock.nowSeconds();
  const alike = (await ports.families.list(origin)).filter(
    ({ family, ended }) =>
      ended === undefined &&
      endOf(family, signIn.refresh) > nowSeconds &&
      family.clientId === clientId &&
      policy.targets.get(family.target) === policy.targets.get(target),
  );
  for (const { family } of alike.slice(FAMILIES_MAX)) {
    const by = {
      type: "refresh.ended",
      reason: "families_too_many",
      request,
      ...describeFamily(family),
    } as const;
    await recordEnding(ports, { by: "grant", id: family.id }, { ...by, grant: { id: family.id } });
  }
}
