/** The bodies of answers, as JSON Schema: `json` names what a body may have, and what it always has. */

export type Schema = Readonly<Record<string, unknown>>;

const [text, number, whole, flag] = ["string", "number", "integer", "boolean"].map((type) => ({ type }));
const list = (items: Schema | undefined): Schema => ({ type: "array", items });
const any: Schema = { type: "object", additionalProperties: true };

/** `members`: those that may be absent end in a question mark. */
const json = (members: Readonly<Record<string, Schema | undefined>>, rest = false): Schema => ({
  type: "object",
  properties: Object.fromEntries(
    Object.entries(members).map(([name, schema]) => [name.replace("?", ""), schema]),
  ),
  required: Object.keys(members).filter((name) => !name.endsWith("?")),
  additionalProperties: rest,
});

const party = json({ iss: text, sub: text });
const details = list({ type: "object", properties: { type: text }, required: ["type"] });

const token = json({
  ...{ jti: text, client_id: text, subject: party, sub: text, aud: text, scope: text },
  ...{ "authorization_details?": details, chain: list(any), rule: text, "consent?": text },
  ...{ parents: list(text), iat: whole, exp: whole },
});

const job = json({
  ...{
    id: text,
    "title?": text,
    subject: party,
    client_id: text,
    "agent?": text,
    approved_by: { enum: ["user", "operator", "api"] },
  },
  ...{ created_at: whole, not_after: whole, "targets?": list(text), "scope?": text },
  ...{ "authorization_details?": details, "agents?": list(text), "max_tokens?": whole, "max_depth?": whole },
  ...{ "issued?": whole, state: text, "ended_at?": whole, "reason?": text, "event?": text, as_of: whole },
  ...{ "settled?": {}, held: any, open: list(any), partners: list(any), outside: any },
});

const consent = json({
  ...{ id: text, version: whole, subject: party, actor: text, targets: list(text), scope: text },
  ...{ "authorization_details?": details, "expires_at?": whole, "withdrawn_at?": whole },
  ...{ "job?": text, "job_issuer?": text },
  state: {
    enum: ["in-force", "withdrawn", "expired", "job-ended", "job-expired", "job-unknown", "target-gone"],
  },
});

/** By the names under which endpoints refer to them. */
export const ANSWERS = {
  // RFC 6749 5.2: `invalid_token` and the like, with a fixed text.
  Refusal: json({
    ...{ "error?": text, "error_description?": text, "error_uri?": text, "mandate_job_error?": text },
    ...{ "interaction_uri?": text, "deferral_code?": text, "expires_in?": whole, "interval?": whole },
  }),
  // RFC 8935 2.4
  SignalRefusal: json({ "err?": text, "description?": text, "error?": text, "error_description?": text }),
  Token: json({
    ...{
      access_token: text,
      token_type: { enum: ["Bearer", "DPoP", "N_A"] },
      expires_in: number,
      scope: text,
    },
    ...{ "authorization_details?": details, "refresh_token?": text, "issued_token_type?": text },
    ...{ "resource?": text, "mandate_job_id?": text, "mandate_job_expires_at?": whole },
    ...{ "refresh_token_timeout?": whole, "authorization_expires_in?": whole },
  }),
  Introspection: json({ active: flag }, true),
  Nothing: json({}),
  Pushed: json({ request_uri: text, expires_in: whole }),
  Client: json({ client_id: text }, true),
  Consent: consent,
  Consents: json({ consents: list(consent), "next?": text }),
  Job: job,
  Jobs: json({ jobs: list(job), "next?": text }),
  Revocation: json({
    ...{ "dry_run?": flag, "disabled?": flag, "enabled?": flag, "event?": text, "count?": whole },
    ...{ "more?": flag, "tokens?": list(token), "next?": text, "ended?": whole, "cut_off_ms?": whole },
    "already_ended?": flag,
    ...{ "families?": whole, "sessions?": whole, "accepted_until?": whole, "streams?": list(text) },
    ...{ "note?": text, "job?": job },
  }),
  Explanation: json({
    ...{ decision: { enum: ["allow", "deny"] }, mode: text, agents: list(any), policy: text, "error?": text },
    ...{ "reason?": text, rules: list(any), scopes: list(any), "details?": list(any), "would_issue?": any },
    ...{ "could_ask?": any, "not_asked?": {}, "meant?": list(any), explanation: list(text) },
  }),
  Events: json({ events: list(any), cursor: text, more: flag }),
  Checkpoints: json({
    ...{ checkpoints: list(json({ log: text, tree_size: whole, checkpoint: text })), keys: list(any) },
    ...{ cursor: text, more: flag },
  }),
  Pending: json({ pending: flag }),
  Logs: json({ logs: list(json({ log: text, origin: text, keys: list(text) })) }),
  Keys: json({ keys: list(any) }),
  Metadata: json({ issuer: text }, true),
  ResourceMetadata: json({ resource: text }, true),
  Description: json({ openapi: text, info: any, servers: list(any), paths: any }, true),
} satisfies Readonly<Record<string, Schema>>;

export type AnswerName = keyof typeof ANSWERS;
