/** A refusal is a value, a fault is an exception: pure functions and ports answer with a Result. */
export type Result<T, E> = { ok: true; value: T } | { ok: false; error: E };

export const ok = <T>(value: T): { ok: true; value: T } => ({ ok: true, value });

export const err = <E>(error: E): { ok: false; error: E } => ({ ok: false, error });

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

/** Optional members, and those of an index signature, may be undefined; required ones may not. */
type Loose<T> = T extends unknown
  ? { [K in keyof T]: string extends K ? T[K] | undefined : LooseMember<T, K> }
  : never;
type LooseMember<T, K extends keyof T> = Pick<T, K> extends Required<Pick<T, K>> ? T[K] : T[K] | undefined;
