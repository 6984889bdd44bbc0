/** The refusal of an order whose subject is disabled by command, by API or by its issuer (POLICY-D-20). */
import type { Ports } from "../../ports.ts";
import { type Awaitable, whenReady } from "../../result.ts";
import { type DisabledPorts, isDisabled, ofPlatform } from "../endings.ts";
import type { Failure } from "../refusal.ts";
import { toFailure } from "../token-request.ts";
import type { Order } from "./order.ts";

/** Nothing is issued for it, whatever the rules allow. */
export function refuseDisabled(
  ports: DisabledPorts & Pick<Ports, "settings">,
  order: Order,
): Awaitable<Failure | undefined> {
  const reason = "subject_disabled";
  const settings = ports.settings();
  const { access, sub } = order;
  const origin = access.subject?.origin ?? { iss: settings.issuer, sub };
  return whenReady(
    isDisabled(ports, ...ofPlatform(settings, access.workload ?? "")),
    (isCaller): Awaitable<Failure | undefined> =>
      isCaller
        ? { kind: "workload_not_admitted", reason }
        : whenReady(isDisabled(ports, origin, ...ofPlatform(settings, origin.sub)), (isSubject) =>
            isSubject ? toFailure(order, { kind: "token_refused", reason }) : undefined,
          ),
  );
}
