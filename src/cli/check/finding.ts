/** What `mandate check` found at one place of the configuration. */

/** `unreachable`: nothing is known now, and the check may succeed in a minute; `unseen`: this was not looked at. */
export type Level = "ok" | "warning" | "error" | "unreachable" | "unseen";

/** `where` is a path in the configuration; `says` what is there, and what to do about it. */
export type Finding = { level: Level; where: string; says: string };

export const LABELS: Record<Level, string> = {
  ok: "ok",
  warning: "warning",
  error: "error",
  unreachable: "error",
  unseen: "not checked",
};
