/**
 * Finds the record of a `client_id` by its form (PROD-2.1-2): from a metadata document, the configuration or the store.
 */

import type { Reason } from "../audit/reasons.ts";
import type { ClientDocuments, FetchRefused, Ports } from "../ports.ts";
import { type Awaitable, err, ok, type Result, whenReady } from "../result.ts";
import type { Client } from "../settings/settings.ts";
import { isDocumentUrl, parseDocumentUrl } from "../spec/cimd.ts";
import { isAdmitted } from "../spec/spiffe/client-auth.ts";
import { matchesPattern } from "../spec/spiffe/id.ts";

/** PROD-4.3-3: only a URL causes a fetch; it is charged to `address`, which the request comes from. */
export function findClient(
  ports: Pick<Ports, "clients" | "clientDocuments" | "settings">,
  clientId: string,
  address: string,
): Awaitable<Result<Client, FetchRefused>> {
  if (isDocumentUrl(clientId)) {
    // MCPC-D-17, CIMD-5-3, CIMD-7.2-1: the operator's copy of a document, for a host that does not answer this server.
    const pinned = ports.settings().clients.get(clientId);
    if (pinned !== undefined) return ok(pinned);
    const url = parseDocumentUrl(clientId);
    return url.ok ? ports.clientDocuments.find(url.value, address) : err({ reason: url.error.kind });
  }
  return whenReady(ports.clients.find(clientId), (client) =>
    client === undefined ? err({ reason: "client_unknown" }) : ok(client),
  );
}

/**
 * MCPC-D-25: a refresh token of this client tells that its document was good before, on whatever instance, and that a
 * user of it comes: no fetch is charged to the source that its users share, and one that fails is told as passing.
 */
export const documentsOfHolder = (
  { find }: ClientDocuments,
  holder: () => Promise<string | undefined>,
): ClientDocuments => ({
  async find(url, source, until) {
    const found = await find(url, source, until);
    const isUnfetched = !found.ok && (found.error.waitSeconds ?? found.error.failed) !== undefined;
    if (!isUnfetched || (await holder()) !== url.text) return found;
    const again = found.error.waitSeconds === undefined ? found : await find(url, undefined, until);
    return again.ok || again.error.failed === undefined ? again : err({ ...again.error, unreachable: true });
  },
});

/** SPCA-3.1-10, SPCA-3.1-12, SPCA-3.2-7, SPCA-3.2-8: the client's record must name this workload. */
export function checkAssociation(
  { settings }: Pick<Ports, "settings">,
  { auth, source }: Client,
  spiffeId: string,
  trustDomain: string,
): Result<undefined, { reason: Reason }> {
  if (!("spiffeId" in auth) || !matchesPattern(auth.spiffeId, spiffeId)) {
    return err({ reason: "workload_not_associated" });
  }
  // A client's own metadata cannot admit a workload that the operator does not admit.
  const byOperator = source === "configuration" || source === "operator";
  const admit = settings().trustDomains.get(trustDomain)?.admit ?? "none";
  return byOperator || isAdmitted(admit, spiffeId) ? ok(undefined) : err({ reason: "workload_not_admitted" });
}
