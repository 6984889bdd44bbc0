/**
 * The trace that a caller says its request belongs to: W3C Trace Context, https://www.w3.org/TR/trace-context/, section
 * 3.2. It is a claim: it stands in the log and in the audit event, so that operators can compare both with other systems;
 * it decides nothing, and is sent to no one. What is malformed counts as absent (4.3), and `tracestate` is not read.
 */

/** The ids are in hexadecimal, in lower case: 16 bytes for the trace, and 8 bytes for the caller's own span. */
export type TraceContext = { readonly traceId: string; readonly parentId: string };

const FIELD =
  /^(?<version>[0-9a-f]{2})-(?<traceId>[0-9a-f]{32})-(?<parentId>[0-9a-f]{16})-[0-9a-f]{2}(?<rest>-.*)?$/;
const FIRST_VERSION = "00";
/** Later versions may add members, but a field longer than this is not read. */
const CHARS_MAX = 256;

/** `field` is the value of `traceparent`; several lines of it, joined by commas, are malformed. */
export function readTraceparent(field: string | undefined): TraceContext | undefined {
  if (field === undefined || field.length > CHARS_MAX) return undefined;
  const { version = "ff", traceId = "", parentId = "", rest } = FIELD.exec(field)?.groups ?? {};
  if (version === "ff" || (version === FIRST_VERSION && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  return { traceId, parentId };
}
