/** An event as a log has it, read by a program that trusts its log, or verifies it by itself. */
import { isJsonObject, type Json } from "../spec/rfc8259.ts";
import type { AuditEvent } from "./event.ts";

export type Recorded = AuditEvent & { v: number; log: string; seq: number; id: string; time: string };

/** Verifying the chain parses strictly; a million events are parsed here once more. */
export function readRecorded(body: string): Recorded | undefined {
  let json: Json;
  try {
    json = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isJsonObject(json)) return undefined;
  const { v, log, seq, time, type } = json;
  const isEvent = typeof v === "number" && typeof seq === "number" && typeof type === "string";
  return isEvent && typeof log === "string" && typeof time === "string"
    ? (json as unknown as Recorded)
    : undefined;
}
