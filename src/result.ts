/** A refusal is a value, a fault is an exception: pure functions and ports answer with a Result. */
export type Result<T, E> = { ok: true; value: T } | { ok: false; error: E };

export const ok = <T>(value: T): { ok: true; value: T } => ({ ok: true, value });

export const err = <E>(error: E): { ok: false; error: E } => ({ ok: false, error });

/** What is there at once, or has to be waited for: only a fetch, a database or a queue makes its callers wait. */
export type Awaitable<T> = T | Promise<T>;

/** Goes on with the value: at once where it is there. */
export const whenReady = <T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> =>
  value instanceof Promise ? value.then(next) : next(value);

/** Goes on with what the work gives or with the fault that it ends with: at once where it does not wait. */
export function whenDone<T, R>(
  work: () => Awaitable<T>,
  next: (value: T) => Awaitable<R>,
  failed: (fault: unknown) => Awaitable<R>,
): Awaitable<R> {
  let value: Awaitable<T>;
  try {
    value = work();
  } catch (fault) {
    return failed(fault);
  }
  return value instanceof Promise ? value.then(next, failed) : next(value);
}

/** All of them: at once where each of them is there. */
export const allOf = <T>(values: readonly Awaitable<T>[]): Awaitable<readonly T[]> =>
  values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[]);

/** Goes on with the value of a result, and ends with its error. */
export const whenOk = <T, E, R, F>(
  result: Awaitable<Result<T, E>>,
  next: (value: T) => Awaitable<Result<R, F>>,
): Awaitable<Result<R, E | F>> =>
  whenReady(result, (found): Awaitable<Result<R, E | F>> => (found.ok ? next(found.value) : found));

/**
 * The members that are not undefined. The type comes from where the object goes, so that an undeclared member does not
 * compile; a conditional spread (`...(x !== undefined && { x })`) would let it pass.
 */
export function defined<T extends object = never>(members: NoInfer<Loose<T>>): T {
  const given: Readonly<Record<string, unknown>> = members;
  const kept: Record<string, unknown> = {};
  // In place of Object.entries, which would make an array for each member of nearly every object here.
  for (const name in given) {
    const value = given[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept as T;
}

/**
 * The members as they are, for what is written as JSON or as a row, where one that is undefined is as good as absent, or
 * is only read by its names.
 */
export const sparse = <T extends object = never>(members: NoInfer<Loose<T>>): T => members as unknown as T;

/** Optional members, and those of an index signature, may be undefined; required ones may not. */
export type Loose<T> = T extends unknown
  ? { [K in keyof T]: string extends K ? T[K] | undefined : LooseMember<T, K> }
  : never;
type LooseMember<T, K extends keyof T> = Pick<T, K> extends Required<Pick<T, K>> ? T[K] : T[K] | undefined;
