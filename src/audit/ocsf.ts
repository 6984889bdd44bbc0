/**
 * Events for security tools, after the Open Cybersecurity Schema Framework (AUDIT-D-20): https://schema.ocsf.io/1.6.0/
 * Covers Authentication (3002) and Authorize Session (3003); other events are base events (0), and each has the stored text.
 */
import { defined } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { REASONS } from "./reasons.ts";
import { type Recorded, readRecorded } from "./recorded.ts";
import { targetIn } from "./uses.ts";

export const OCSF_VERSION = "1.6.0";
/** No media type is registered for it. */
export const OCSF_TYPE = "application/x-ocsf-ndjson";

const SENTENCES: ReadonlyMap<string, string> = new Map(Object.entries(REASONS));

type Class = { category_uid: number; class_uid: number; activity_id: number };

const AUTHENTICATION = { category_uid: 3, class_uid: 3002 };
const [LOGON, LOGOFF, ASSIGN_PRIVILEGES, OTHER] = [1, 2, 1, 99];
const [OPENID, OAUTH, BASIC] = [4, 6, 11];

const LOGONS: readonly string[] = [
  "client.authenticated",
  "client.auth_failed",
  "user.signed_in",
  "user.signin_failed",
  "user.rechecked",
];

function classOf({ type, mode }: Recorded): Class {
  if (LOGONS.includes(type)) return { ...AUTHENTICATION, activity_id: LOGON };
  if (type === "user.signed_out") return { ...AUTHENTICATION, activity_id: LOGOFF };
  // A decision about a token has a mode.
  if (mode !== undefined) return { category_uid: 3, class_uid: 3003, activity_id: ASSIGN_PRIVILEGES };
  return { category_uid: 0, class_uid: 0, activity_id: OTHER };
}

const SEVERITIES = { allow: 1, deny: 2, error: 3 } as const;

/** The text of the event; undefined for what is no event of ours. */
export function ocsfText({ body }: { body: string }): string | undefined {
  const event = readRecorded(body);
  return event && JSON.stringify(ocsfOf(event, body));
}

function ocsfOf(event: Recorded, body: string): JsonObject {
  const { id, log, seq, time, type, outcome, reason, request, count } = event;
  const kind = classOf(event);
  return defined<JsonObject>({
    ...kind,
    type_uid: 100 * kind.class_uid + kind.activity_id,
    activity_name: kind.activity_id === OTHER ? type : undefined,
    time: Date.parse(time),
    severity_id: SEVERITIES[outcome] ?? 0,
    status_id: outcome === "allow" ? 1 : 2,
    status_code: reason,
    status_detail: SENTENCES.get(reason),
    message: type,
    count,
    metadata: defined<JsonObject>({
      version: OCSF_VERSION,
      product: { name: "Mandate", vendor_name: "Mandate" },
      uid: id,
      sequence: seq,
      log_name: log,
      event_code: type,
      original_time: time,
      correlation_uid: request?.id,
    }),
    src_endpoint: request && { ip: request.source_ip },
    raw_data: body,
    ...partiesOf(event, kind),
  });
}

/** The user, and what the class has beside it. */
function partiesOf(event: Recorded, { class_uid: is }: Class): JsonObject {
  const { client, subject, detail, granted, requested, type } = event;
  const [iss, sub] = [detail?.iss, detail?.sub];
  const person = subject ?? (typeof iss === "string" && typeof sub === "string" ? { iss, sub } : undefined);
  const caller = client && { uid: client.workload ?? client.client_id, name: client.client_id };
  const user = (person && { uid: person.sub, name: person.sub, domain: person.iss }) ??
    caller ?? { name: "unknown" };
  if (is === AUTHENTICATION.class_uid) {
    const isUser = type.startsWith("user.");
    const isBasic = client?.auth_method.endsWith("secret_basic");
    return {
      user,
      auth_protocol_id: isUser ? OPENID : isBasic ? BASIC : OAUTH,
      service: { name: "Mandate", uid: event.log },
    };
  }
  if (is === 0) return caller === undefined ? {} : { actor: { app_uid: caller.uid, app_name: caller.name } };
  const target = targetIn(event);
  return defined<JsonObject>({
    user,
    actor: caller && { app_uid: caller.uid, app_name: caller.name },
    privileges: (granted?.scope ?? requested?.scope ?? "").split(" ").filter((one) => one !== ""),
    session: granted && { uid: granted.jti, expiration_time: granted.exp * 1000 },
    dst_endpoint: target === undefined ? undefined : { svc_name: target },
  });
}
