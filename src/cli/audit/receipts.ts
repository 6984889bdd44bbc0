/** `mandate audit receipt` and `audit keys`: what proves an event to a reader who does not trust this server (RCPT-D). */
import {
  findAll,
  findIssuing,
  keyOf,
  makeReceipt,
  type ReceiptSources,
} from "../../adapters/audit/receipts.ts";
import { makeSigner, type OpenedKey } from "../../adapters/crypto/signer.ts";
import { verifier } from "../../adapters/crypto/verifier.ts";
import { AUDIT_PAGE_MAX } from "../../limits/audit.ts";
import { EXIT } from "../../limits/process.ts";
import type { AuditRecord } from "../../records.ts";
import { recordTrailAccess } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { word } from "../text.ts";

type Asked = { id: string; ofJob: boolean; chain: boolean; rest: boolean };

async function openKeys({ store, custody }: Admin): Promise<readonly OpenedKey[]> {
  const rows = (await store.keys.list()).filter(({ purpose }) => purpose === "checkpoint");
  return Promise.all(rows.map(async (row) => ({ facts: row, published: {}, ...(await custody.open(row)) })));
}

export async function showReceipts(admin: Admin, { id, ofJob, ...showing }: Asked): Promise<number> {
  const { store, printError } = admin;
  // AUDIT-D-6: recorded before anything is shown.
  await recordTrailAccess(store, { command: "audit receipt", [ofJob ? "job" : "jti"]: id });
  const keys = await openKeys(admin);
  const sources: ReceiptSources = {
    store,
    signer: makeSigner(
      () => keys,
      async () => {},
    ),
    verifier,
  };
  const found = ofJob
    ? await findAll(store.audit, [[{ name: "job", value: id }]], AUDIT_PAGE_MAX + 1)
    : [await findIssuing(store.audit, id)].filter((one) => one !== undefined);
  if (found.length === 0) {
    printError(`No event records a ${ofJob ? "job with this id" : "token with this jti"}: ${word(id)}.`);
    return EXIT.refused;
  }
  if (found.length > AUDIT_PAGE_MAX) {
    printError(`The job has more than ${AUDIT_PAGE_MAX} events: export the trail instead (audit export).`);
    return EXIT.refused;
  }
  return printAll(admin, sources, found, showing);
}

/** All of them or none, because a file that lacks one would be taken for the whole. */
async function printAll(
  { print, printError }: Admin,
  sources: ReceiptSources,
  found: readonly AuditRecord[],
  showing: { chain: boolean; rest: boolean },
): Promise<number> {
  const receipts: string[] = [];
  for (const event of found) {
    const receipt = await makeReceipt(sources, event, showing);
    if (receipt.ok) {
      receipts.push(receipt.value);
      continue;
    }
    printError(
      receipt.error === "pending"
        ? `No checkpoint covers event ${event.seq} of ${word(event.log)} yet: try again in some seconds.`
        : `There are no receipts of event ${event.seq} of ${word(event.log)}: a former version recorded or signed it.`,
    );
    return EXIT.refused;
  }
  print(receipts.join("").trimEnd());
  return EXIT.done;
}

/** The keys of each log, the newest first, as verifiers of receipts take them. */
export async function showLogKeys(admin: Admin): Promise<number> {
  const { store, settings, print } = admin;
  const keys = (await openKeys(admin)).filter(({ publicJwk: { kty } }) => kty === "OKP").toReversed();
  for (const log of await store.log.logs())
    for (const { facts, publicJwk } of keys)
      print(`${keyOf(settings.issuer, log, publicJwk)} ${facts.state}`);
  return EXIT.done;
}
