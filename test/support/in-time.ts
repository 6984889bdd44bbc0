import { AssertionError } from "node:assert";

/**
 * The value of a promise, or a failed assertion after the deadline: a test that only awaits it would hang. It is there to
 * end a wait for what never happens, also on a machine that does much else, and not to measure.
 */
export function inTime<T>(promise: Promise<T>, what: string, deadlineMs = 60_000): Promise<T> {
  const late = Promise.withResolvers<never>();
  const message = `${what}: not within ${deadlineMs} ms`;
  const timer = setTimeout(() => late.reject(new AssertionError({ message })), deadlineMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
