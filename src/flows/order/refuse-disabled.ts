/** The refusal of an order whose subject is disabled by command, by API or by its issuer (POLICY-D-20). */
import type { Origin } from "../../policy/access.ts";
import type { Ports } from "../../ports.ts";
import type { Awaitable } from "../../result.ts";
import { whenReady } from "../../result.ts";
import { parsePlatformId } from "../../spec/workload-grant.ts";
import type { DisabledPorts } from "../endings.ts";
import { isDisabled } from "../endings.ts";
import type { Failure } from "../refusal.ts";
import { toFailure } from "./decide-order.ts";
import type { Order } from "./order.ts";

/** Nothing is issued for it, whatever the rules allow; the workload of a platform is a subject of its issuer too. */
export function refuseDisabled(
  ports: DisabledPorts & Pick<Ports, "settings">,
  order: Order,
): Awaitable<Failure | undefined> {
  const reason = "subject_disabled";
  const { issuer, platforms } = ports.settings();
  const { access, sub } = order;
  const ofPlatform = (name: string): readonly Origin[] => {
    const id = parsePlatformId(name);
    const registration = id && platforms.get(id.registration);
    return registration === undefined ? [] : [{ iss: registration.issuer, sub: id?.named.join("/") ?? "" }];
  };
  const origin = access.subject?.origin ?? { iss: issuer, sub };
  return whenReady(
    isDisabled(ports, ...ofPlatform(access.workload ?? "")),
    (isCaller): Awaitable<Failure | undefined> =>
      isCaller
        ? { kind: "workload_not_admitted", reason }
        : whenReady(isDisabled(ports, origin, ...ofPlatform(origin.sub)), (isSubject) =>
            isSubject ? toFailure(order, { kind: "token_refused", reason }) : undefined,
          ),
  );
}
