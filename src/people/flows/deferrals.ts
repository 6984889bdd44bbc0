/** The code by which a client waits for its user (DTR-6.4): what is kept of the request behind it, and its ends. */
import type { RequestingClient } from "../../flows/order/order.ts";
import { jktOf } from "../../flows/prove-keys.ts";
import type { Failure } from "../../flows/refusal.ts";
import { DEFERRAL_KEPT_SECONDS } from "../../limits/people.ts";
import type { RowChange } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { PeoplePorts } from "../ports.ts";
import type { DeferralEnd, DeferralHolder, DeferralRecord, PeopleRow } from "../records.ts";

/** DTR-11.8-1: the link is a digest of the code, and its id finds the row, so that no code is stored. */
export const linkOf = (hash: PeoplePorts["hash"], code: string): string =>
  hash.sha256(JSON.stringify(["link of deferral", code]));

/** DTR-D-15: the thread of the events of one code. */
export const threadOf = (hash: PeoplePorts["hash"], link: string): string => hash.sha256(link);

/** DTR-6.4-7: who may use a code: its client, as this workload, and with the key of its first request. */
export const holderOfCode = ({ clientId, workload, keys }: RequestingClient, endsAtSeconds: number) =>
  defined<DeferralHolder>({
    clientId,
    workload,
    jkt: jktOf(keys),
    x5t: jktOf(keys) === undefined ? certificateOf(keys) : undefined,
    endsAtSeconds,
  });

const certificateOf = (keys: RequestingClient["keys"]): string | undefined =>
  keys === "assumed" ? undefined : keys?.certificate?.x5t;

/** DTR-6.5-1: the code is known and this client's, then comes the key, then its life, then how it ended. */
export async function findDeferral(
  { shortLived, clock }: Pick<PeoplePorts, "shortLived" | "clock">,
  client: RequestingClient,
  link: string,
): Promise<Result<DeferralRecord, Failure>> {
  const nowSeconds = clock.nowSeconds();
  const row = await shortLived.find("deferral", link, nowSeconds);
  const end = row === undefined ? await shortLived.find("deferral_end", link, nowSeconds) : undefined;
  const holder: DeferralHolder | undefined = row?.body ?? end?.body;
  // DTR-6.6-2, DTR-D-8: the code of another client, or of another workload of the same client, counts as unknown.
  if (holder === undefined || holder.clientId !== client.clientId || holder.workload !== client.workload)
    return err({ kind: "grant_refused", reason: "deferral_unknown" });
  // DTR-6.4-7, DTR-11.1-2
  if (holder.jkt !== undefined && holder.jkt !== jktOf(client.keys))
    return err({ kind: "proof_refused", reason: "deferral_key_not_proven" });
  if (holder.x5t !== undefined && holder.x5t !== certificateOf(client.keys))
    return err({ kind: "grant_refused", reason: "deferral_key_not_proven" });
  // DTR-6.4-3: the end of a code comes before everything that happened to it.
  if (holder.endsAtSeconds <= nowSeconds)
    return err({ kind: "deferral_expired", reason: "deferral_expired" });
  return row === undefined ? err(ENDED[end?.body.by ?? "refused"]) : ok(row.body);
}

const ENDED: Readonly<Record<DeferralEnd["by"], Failure>> = {
  granted: { kind: "grant_refused", reason: "deferral_redeemed" }, // DTR-6.5-2
  refused: { kind: "deferral_ended", reason: "deferral_refused" },
  cancelled: { kind: "deferral_ended", reason: "deferral_cancelled" },
};

/** DTR-D-6: of two that end the same code, on whatever instances, one does; what was kept of the request goes. */
export function endsBy(
  by: DeferralEnd["by"],
  link: string,
  { clientId, workload, jkt, x5t, endsAtSeconds, question }: DeferralRecord,
): readonly RowChange<PeopleRow>[] {
  const body = defined<DeferralEnd>({ clientId, workload, jkt, x5t, endsAtSeconds, question, by });
  const expiresAtSeconds = endsAtSeconds + DEFERRAL_KEPT_SECONDS;
  return [
    { add: { kind: "deferral_end", key: link, version: 1, body, expiresAtSeconds } },
    { remove: "deferral", key: link },
  ];
}
