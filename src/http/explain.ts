/** POST /policy/explain: tells what the token endpoint would answer to such a request, and why; nothing is issued. */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import { describeCaller } from "../flows/authorize-api.ts";
import {
  describeExplanation,
  type ExplainPorts,
  type Explanation,
  explain,
  formatExplanation,
  type Issued,
} from "../flows/explain.ts";
import { parseQuestion } from "../policy/question.ts";
import { defined } from "../result.ts";
import { httpError, privateJson } from "./answers.ts";
import { type AdmitPorts, admit } from "./bearer.ts";
import { readJson } from "./body.ts";
import { toOAuthError } from "./errors.ts";
import type { Handler } from "./handler.ts";

export function explainEndpoint(ports: AdmitPorts & ExplainPorts): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/policy/explain");
    if (!admitted.ok) return admitted.error;
    const { caller, audited } = admitted.value;
    const { digest } = ports.settings().policy;
    const event: Omit<AuditEvent, "outcome" | "reason"> = {
      type: "admin.access",
      request: audited,
      client: describeCaller(caller),
      policy: { digest },
    };
    const json = await readJson(request);
    const question = json.ok ? parseQuestion(json.value) : json;
    if (!question.ok) {
      const refused: AuditEvent = { ...event, outcome: "deny", reason: "question_malformed" };
      await ports.journal.record({ event: refused });
      return httpError(json.ok ? { status: 400, description: "the question is malformed" } : json.error);
    }
    const explanation = await explain(ports, question.value);
    const detail = describeExplanation(question.value, explanation);
    const explained: AuditEvent = { ...event, outcome: "allow", reason: "explained", detail };
    // AUDIT-D-6: the question is recorded before it is answered.
    await ports.journal.record({ event: explained });
    return privateJson(200, show(explanation));
  };
}

type ExplanationJson = {
  decision: "allow" | "deny";
  mode: Explanation["mode"];
  agents: Explanation["agents"];
  policy: string;
  /** The code that the caller of the token endpoint would get, and the reason that its audit trail would have. */
  error?: string;
  reason?: Reason;
  rules: Explanation["trace"];
  scopes: Explanation["scopes"];
  details?: Explanation["details"];
  would_issue?: Issued;
  /** Whether the user could be asked for the consent that alone is missing. */
  could_ask?: Explanation["couldAsk"];
  /** Why the user is not asked for a consent that lacks. */
  not_asked?: Explanation["notAsked"];
  meant?: Explanation["meant"];
  explanation: readonly string[];
};

function show(explanation: Explanation): ExplanationJson {
  const { mode, agents, digest, failure, trace, scopes, details, issued, couldAsk, notAsked, meant } =
    explanation;
  return defined<ExplanationJson>({
    decision: issued === undefined ? "deny" : "allow",
    mode,
    agents,
    policy: digest,
    error: failure && toOAuthError(failure.kind).error,
    reason: failure?.reason,
    rules: trace,
    scopes,
    details,
    would_issue: issued,
    could_ask: couldAsk,
    not_asked: notAsked,
    meant,
    explanation: formatExplanation(explanation),
  });
}
