/**
 * POST /revocations: an operator ends tokens by what they have in common, or is shown beforehand which tokens these
 * are; keeps a subject out, and enables it again.
 */

import type { AuditEvent } from "../audit/event.ts";
import { describeCaller } from "../flows/authorize-api.ts";
import {
  asEvent,
  type Ended,
  type EndingEvent,
  type EndingPorts,
  enableSubject,
  endTokens,
  isDisabled,
  type Preview,
  previewEnding,
} from "../flows/endings.ts";
import { acceptedUntil, type JobPorts, type JobStatus, readStatus, stopAndCount } from "../flows/jobs.ts";
import { endedJson, jobJson, type TokenJson, tokenJson } from "../flows/record-json.ts";
import type { EndingSelector } from "../policy/endings.ts";
import { parseRevocation } from "../policy/revocation.ts";
import { defined } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { httpError, privateJson } from "./answers.ts";
import { type AdmitPorts, admit } from "./bearer.ts";
import { readJson } from "./body.ts";
import type { Handler } from "./handler.ts";

export function revocationsEndpoint(ports: AdmitPorts & EndingPorts & JobPorts): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/revocations");
    if (!admitted.ok) return admitted.error;
    const { caller, audited } = admitted.value;
    const { issuer, policy } = ports.settings();
    const { digest } = policy;
    const by = { request: audited, client: describeCaller(caller), policy: { digest } };
    const record = (told: Pick<AuditEvent, "outcome" | "reason" | "detail">) =>
      ports.journal.record({ event: { ...by, ...told, type: "admin.access" } });

    const json = await readJson(request);
    const order = json.ok ? parseRevocation(json.value, issuer) : json;
    if (!order.ok) {
      await record({ outcome: "deny", reason: "revocation_malformed" });
      return httpError(json.ok ? { status: 400, description: "the order is malformed" } : json.error);
    }
    const { selector, enables, dryRun, page } = order.value;
    const done = { ...by, reason: "by_administrator" } as const;
    if (enables !== undefined && dryRun) {
      const disabled = await isDisabled(ports, enables);
      await record({ outcome: "allow", reason: "revocation_previewed", detail: { enables: { ...enables } } });
      return privateJson(200, { dry_run: true, disabled });
    }
    if (enables !== undefined) {
      const enabled = await enableSubject(ports, enables, done);
      return privateJson(
        200,
        defined<JsonObject>({ enabled: enabled !== undefined, event: enabled?.eventId }),
      );
    }
    if (!dryRun) {
      const ended = await endBy(ports, selector, done);
      if (ended === undefined)
        await record({ outcome: "allow", reason: "job_ended", detail: { ends: { ...selector } } });
      const status = await statusOf(ports, selector);
      const accepted_until = status && acceptedUntil(status);
      const told = ended === undefined ? { ended: 0, already_ended: true, accepted_until } : endedJson(ended);
      const job = status && jobJson(status);
      return privateJson(200, defined<JsonObject>({ ...told, note: WHAT_IT_MEANS, job }));
    }
    const preview = await previewEnding(ports, selector, page);
    // AUDIT-D-6: the call is recorded before it is answered.
    const detail: JsonObject = { ends: { ...selector }, count: preview.count };
    await record({ outcome: "allow", reason: "revocation_previewed", detail });
    const status = await statusOf(ports, selector);
    const job = status && jobJson(status);
    return privateJson(200, defined({ ...showPreview(preview, page.limit), job }));
  };
}

/** JOB-D-27: undefined for a job that had ended before. */
async function endBy(
  ports: EndingPorts & JobPorts & AdmitPorts,
  selector: EndingSelector,
  by: EndingEvent,
): Promise<Ended | undefined> {
  const job = selector.by === "job" ? await ports.jobs.find(selector.id) : undefined;
  if (job === undefined) return endTokens(ports, selector, asEvent(selector, by));
  return stopAndCount(ports, job, by);
}

/** JOB-D-20: of a job, the report of its closure, before or after its end. */
async function statusOf(ports: JobPorts, selector: EndingSelector): Promise<JobStatus | undefined> {
  const found = selector.by === "job" ? await ports.jobs.find(selector.id) : undefined;
  return found && readStatus(ports, found);
}

const WHAT_IT_MEANS =
  "ends the tokens that exist, and what is issued up to the cut-off; to keep a party out, change the configuration, or send disabled: true for a subject; resource servers that verify tokens offline may accept an ended one until accepted_until";

/** `next` is the `after` of the next page; `count` is of all that is left from this page on. */
type PreviewJson = {
  dry_run: true;
  count: number;
  more?: true;
  tokens: readonly TokenJson[];
  next?: string;
};

function showPreview({ count, more, tokens }: Preview, limit: number): PreviewJson {
  const next = count > limit ? tokens.at(-1)?.jti : undefined;
  return defined<PreviewJson>({ dry_run: true, count, more, tokens: tokens.map(tokenJson), next });
}
