/**
 * GET /audit/receipts/{jti}, /audit/logs, /audit/logs/{log} and /audit/consistency/{log} (RCPT-D): what proves a token, and
 * that a log has only grown, to readers who do not trust this server.
 */
import type { ApiCaller } from "../flows/authorize-api.ts";
import { RECEIPT_RETRY_SECONDS } from "../limits/audit.ts";
import { mayIntrospect } from "../policy/judge.ts";
import type { IssuedFor, Ports } from "../ports.ts";
import { httpError, notFound, PRIVATE_JSON, privateJson } from "./answers.ts";
import { recordAuditReading } from "./audit.ts";
import { type AdmitPorts, admit } from "./bearer.ts";
import { type Handler, type HttpResponse, pathOf } from "./handler.ts";

type ReceiptPorts = AdmitPorts & Pick<Ports, "receipts">;

const note = (body: string): HttpResponse => ({
  status: 200,
  headers: { ...PRIVATE_JSON, "Content-Type": "text/plain; charset=utf-8" },
  body,
});

export function receiptEndpoint(ports: ReceiptPorts): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/audit/receipts");
    if (!admitted.ok) return admitted.error;
    const jti = decoded(pathOf(request).split("/").at(-1) ?? "");
    const issued = jti === undefined ? undefined : await ports.receipts.find(jti);
    const { caller } = admitted.value;
    const reads = caller.scopes.includes("audit:read");
    // RCPT-D-6: one of a token that is not the caller's is not told from one that is not there.
    if (issued === undefined || !(reads || isParty(ports, caller, issued))) return notFound();
    if (reads) await recordAuditReading(ports, admitted.value, { receipt: issued.jti });
    const receipt = await issued.receipt();
    if (receipt.ok) return note(receipt.value);
    if (receipt.error === "without") return notFound();
    return privateJson(202, { pending: true }, { "Retry-After": String(RECEIPT_RETRY_SECONDS) });
  };
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** The client of the token, or one that may ask about it by introspection. */
const isParty = ({ settings }: ReceiptPorts, caller: ApiCaller, { client, audience }: IssuedFor): boolean =>
  client === caller.clientId || mayIntrospect(settings().policy, caller, audience);

/** RCPT-D-10: the keys alone are for everyone. */
export function auditLogsEndpoint(ports: Pick<Ports, "receipts">): Handler {
  return async () => {
    const logs = await ports.receipts.logs();
    return privateJson(200, { logs });
  };
}

export function auditLogEndpoint(ports: ReceiptPorts): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/audit/logs");
    if (!admitted.ok) return admitted.error;
    const found = await ports.receipts.checkpoint(pathOf(request).split("/").at(-1) ?? "");
    return found === undefined ? notFound() : note(found);
  };
}

/** The hashes that prove the log of `to` records to have grown from that of `from`, one a line. */
export function consistencyEndpoint(ports: ReceiptPorts): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/audit/logs");
    if (!admitted.ok) return admitted.error;
    const query = new URL(request.url).searchParams;
    const [from, to] = ["from", "to"].map((name) => query.get(name) ?? "");
    if (!isSize(from) || !isSize(to) || Number(from) > Number(to)) {
      const description = "from and to are numbers of records, from at least 1 and not above to";
      return httpError({ status: 400, description });
    }
    const log = pathOf(request).split("/").at(-1) ?? "";
    const proof = await ports.receipts.consistency(log, Number(from), Number(to));
    return proof === undefined ? notFound() : note(proof.map((hash) => `${hash}\n`).join(""));
  };
}

const isSize = (text: string | undefined): text is string => /^[1-9]\d{0,14}$/.test(text ?? "");
