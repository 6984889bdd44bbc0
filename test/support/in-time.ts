import { AssertionError } from "node:assert";

/** The value of a promise, or a failed assertion after the deadline: a test that only awaits it would hang. */
export function inTime<T>(promise: Promise<T>, what: string, deadlineMs = 3000): Promise<T> {
  const late = Promise.withResolvers<never>();
  const message = `${what}: not within ${deadlineMs} ms`;
  const timer = setTimeout(() => late.reject(new AssertionError({ message })), deadlineMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
