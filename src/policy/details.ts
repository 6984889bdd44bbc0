/**
 * Details that only narrow (RFC 9396): whether objects conform to their types, whether one is within another, and what
 * several sides leave together. A type is data; each of its fields is compared by one row of the table.
 */
import { DETAIL_OBJECTS_MAX, DETAIL_VALUES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { type Detail, type DetailValue, fitsDetails } from "../spec/rfc9396.ts";
import type { Worded } from "./worded.ts";

// --- types ------------------------------------------------------------------------------------------------------

export type DetailField = {
  is: FieldForm;
  narrows: Narrowing;
  /** The only values, or members of a list. */
  from?: readonly string[];
  /** The field beside it that says what an amount is of. */
  unit?: string;
  label?: Worded;
  /** The audit trail has a digest of the value. */
  private?: boolean;
};

export type DetailType = {
  title?: Worded;
  /** The scopes that objects of the type say more about. */
  governs: readonly string[];
  /** The fields that every object has. */
  needs: readonly string[];
  /** Whether an authorization request with such an object has to be pushed. */
  pushed: boolean;
  fields: ReadonlyMap<string, DetailField>;
};

export type DetailTypes = ReadonlyMap<string, DetailType>;

// --- values -----------------------------------------------------------------------------------------------------

const DECIMAL = /^(0|[1-9][0-9]{0,14})(?:\.([0-9]{1,18}))?$/;
/** Whole segments of printable ASCII, without the characters at which a reader of paths decodes or cuts. */
const PATH = /^\/?[!-"$&-.0-:<->@-[\]-~]+(?:\/[!-"$&-.0-:<->@-[\]-~]+)*$/;
/** Segments that a reader of paths resolves. */
const DOTS = /(?:^|\/)\.+(?:\/|$)/;

const isWhole = (value: DetailValue): boolean => Number.isSafeInteger(value);

/** What the value of a field is; a list is never empty and has no text twice. */
const FORMS = {
  string: (value: DetailValue): boolean => typeof value === "string",
  strings: (value: DetailValue): boolean => Array.isArray(value),
  integer: isWhole,
  decimal: (value: DetailValue): boolean => typeof value === "string" && DECIMAL.test(value),
  seconds: (value: DetailValue): boolean => isWhole(value) && Number(value) >= 0,
  boolean: (value: DetailValue): boolean => typeof value === "boolean",
};
export type FieldForm = keyof typeof FORMS;

const textsOf = (value: DetailValue): readonly string[] => (typeof value === "object" ? value : []);

/** Numbers as they are; decimals by the length of the whole part first, which has no leading zeros. */
function compare(a: DetailValue, b: DetailValue): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [, whole = "", part = ""] = DECIMAL.exec(String(a)) ?? [];
  const [, otherWhole = "", otherPart = ""] = DECIMAL.exec(String(b)) ?? [];
  if (whole.length !== otherWhole.length) return whole.length - otherWhole.length;
  const [one, other] = [whole + part.padEnd(18, "0"), otherWhole + otherPart.padEnd(18, "0")];
  return one === other ? 0 : one < other ? -1 : 1;
}

type Comparison = {
  /** The forms of value that it compares. */
  compares: readonly FieldForm[];
  /** Whether the first value allows nothing that the second one does not. */
  within(a: DetailValue, b: DetailValue): boolean;
  /** What both allow; undefined for nothing. */
  both(a: DetailValue, b: DetailValue): DetailValue | undefined;
};

/** The narrower of two values, of which one is always within the other. */
const ordered = (compares: readonly FieldForm[], within: Comparison["within"]): Comparison => ({
  compares,
  within,
  both: (a, b) => (within(a, b) ? a : b),
});

/** The narrower of two values, if one is within the other. */
const nested = (compares: readonly FieldForm[], within: Comparison["within"]): Comparison => ({
  compares,
  within,
  both: (a, b) => (within(a, b) ? a : within(b, a) ? b : undefined),
});

const atMost = (a: DetailValue, b: DetailValue): boolean => compare(a, b) <= 0;
const atLeast = (a: DetailValue, b: DetailValue): boolean => compare(a, b) >= 0;

/** RFC9396-6.1-1, RFC9396-12-2: how the values of a field are compared; texts are compared as they are. */
const COMPARISONS = {
  equal: nested(["string", "integer", "boolean"], (a, b) => a === b),
  subset: {
    compares: ["strings"],
    within: (a, b) => textsOf(a).every((one) => textsOf(b).includes(one)),
    both(a, b) {
      const common = textsOf(a).filter((one) => textsOf(b).includes(one));
      return common.length > 0 ? common : undefined;
    },
  },
  superset: {
    compares: ["strings"],
    within: (a, b) => textsOf(b).every((one) => textsOf(a).includes(one)),
    both(a, b) {
      const all = [...new Set([...textsOf(a), ...textsOf(b)])];
      // RAR-D-12: leaving some of them out would be wider.
      return all.length <= DETAIL_VALUES_MAX ? all : undefined;
    },
  },
  max: ordered(["integer", "decimal"], atMost),
  min: ordered(["integer", "decimal"], atLeast),
  prefix: nested(["string"], (a, b) => a === b || String(a).startsWith(`${b}/`)),
  "not-after": ordered(["seconds"], atMost),
  "not-before": ordered(["seconds"], atLeast),
  only: ordered(["boolean"], (a, b) => a === true || b === false),
} satisfies Record<string, Comparison>;
export type Narrowing = keyof typeof COMPARISONS;

export const FIELD_FORMS = Object.keys(FORMS) as FieldForm[];
export const NARROWINGS = Object.keys(COMPARISONS) as Narrowing[];

/** Whether values of this form can be compared like this. */
export const isComparable = (is: FieldForm, narrows: Narrowing): boolean =>
  (COMPARISONS[narrows] as Comparison).compares.includes(is);

function isValueOf({ is, narrows, from }: DetailField, value: DetailValue): boolean {
  if (!FORMS[is](value)) return false;
  if (narrows === "prefix" && !(PATH.test(String(value)) && !DOTS.test(String(value)))) return false;
  const texts = typeof value === "string" ? [value] : textsOf(value);
  return from === undefined || texts.every((one) => from.includes(one));
}

// --- objects ----------------------------------------------------------------------------------------------------

export type ConformFailure = {
  kind:
    | "details_type_unknown"
    | "details_field_unknown"
    | "details_field_malformed"
    | "details_field_missing";
  /** The field of which it is told; absent for an unknown type. */
  field?: string;
};

/** RFC9396-5-1, RFC9396-5-2: the first object that is not one of these types is refused. */
export function checkConforms(
  types: DetailTypes,
  details: readonly Detail[],
): Result<undefined, ConformFailure> {
  for (const one of details) {
    const failure = wrongWith(types, one);
    if (failure !== undefined) return err(failure);
  }
  return ok(undefined);
}

const conformsTo =
  (types: DetailTypes) =>
  (detail: Detail): boolean =>
    wrongWith(types, detail) === undefined;

function wrongWith(types: DetailTypes, detail: Detail): ConformFailure | undefined {
  const type = types.get(detail.type);
  if (type === undefined) return { kind: "details_type_unknown" };
  for (const [name, value] of Object.entries(detail)) {
    if (name === "type") continue;
    const field = type.fields.get(name);
    if (field === undefined) return { kind: "details_field_unknown", field: name };
    if (!isValueOf(field, value)) return { kind: "details_field_malformed", field: name };
    // An amount says nothing without its unit.
    if (field.unit !== undefined && detail[field.unit] === undefined) return missing(field.unit);
  }
  const lacking = type.needs.find((name) => detail[name] === undefined);
  return lacking === undefined ? undefined : missing(lacking);
}

const missing = (field: string): ConformFailure => ({ kind: "details_field_missing", field });

/** What the sides of a decision are called in its trace. */
export type DetailSide = "request" | "subject_token" | "rule" | "consent" | "job" | "scope";

/**
 * An object of which nothing was left at a side; `index` is its place among the objects of the side that had it first. At
 * `scope`, none of the scopes that its type governs is granted.
 */
export type FallenDetail = { type: string; index: number; at: DetailSide };

export type Sides = readonly { at: DetailSide; details?: readonly Detail[] | undefined }[];

type Kept = { detail: Detail; index: number };

/**
 * RAR-D-2: what all sides allow, object by object: within one object of each side, never within two together. A side
 * without an object of a type sets no limit by it. RAR-D-3: an error says that nothing is left of a type, or too much.
 */
export function intersectDetails(
  types: DetailTypes,
  sides: Sides,
): Result<
  { details: readonly Detail[]; fallen: readonly FallenDetail[] },
  { fallen: readonly FallenDetail[] }
> {
  let kept: readonly Kept[] = [];
  const fallen: FallenDetail[] = [];
  for (const { at, details = [] } of sides) {
    if (details.length === 0) continue;
    const fitting = details.filter(conformsTo(types));
    const named = new Set(kept.map(({ detail }) => detail.type));
    const next: Kept[] = [];
    for (const { detail, index } of kept) {
      const isLimited = details.some(({ type }) => type === detail.type);
      const parts = isLimited ? fitting.flatMap((one) => together(types, detail, one)) : [detail];
      if (parts.length === 0) fallen.push({ type: detail.type, index, at });
      for (const part of parts) addWidest(types, next, { detail: part, index });
    }
    for (const [index, detail] of details.entries()) {
      if (named.has(detail.type)) continue;
      if (fitting.includes(detail)) addWidest(types, next, { detail, index });
      else fallen.push({ type: detail.type, index, at });
    }
    const left = new Set(next.map(({ detail }) => detail.type));
    const isLost = [...named, ...details.map(({ type }) => type)].some((type) => !left.has(type));
    // RAR-D-12: each side could multiply the objects, so that too many are refused before the next one.
    if (isLost || next.length > DETAIL_OBJECTS_MAX) return err({ fallen });
    kept = next;
  }
  const details = kept.map(({ detail }) => detail);
  return fitsDetails(details) ? ok({ details, fallen }) : err({ fallen });
}

/** An object within another one adds nothing to it. */
function addWidest(types: DetailTypes, kept: Kept[], added: Kept): void {
  if (kept.some(({ detail }) => isWithinOne(types, added.detail, detail))) return;
  const wider = kept.filter(({ detail }) => !isWithinOne(types, detail, added.detail));
  kept.splice(0, kept.length, ...wider, added);
}

/** RFC9396-2.2-1: the fields of an object hold together, so that one without a common value leaves nothing. */
function together(types: DetailTypes, a: Detail, b: Detail): readonly Detail[] {
  const type = types.get(a.type);
  if (type === undefined || a.type !== b.type) return [];
  const both: Record<string, DetailValue> & { type: string } = { type: a.type };
  for (const [name, { narrows }] of type.fields) {
    const [one, other] = [a[name], b[name]];
    if (one === undefined && other === undefined) continue;
    // A field that one of them lacks has the limit of the other.
    const value =
      one === undefined || other === undefined ? (one ?? other) : COMPARISONS[narrows].both(one, other);
    if (value === undefined) return [];
    both[name] = value;
  }
  return [both];
}

/** Whether the first object allows nothing that the second one does not; one that lacks a field of the limit is wider. */
function isWithinOne(types: DetailTypes, inner: Detail, outer: Detail): boolean {
  const type = types.get(inner.type);
  if (type === undefined || inner.type !== outer.type) return false;
  for (const [name, { narrows }] of type.fields) {
    const [value, limit] = [inner[name], outer[name]];
    if (limit === undefined) continue;
    if (value === undefined || !COMPARISONS[narrows].within(value, limit)) return false;
  }
  return true;
}

/** RFC9396-6-1: whether each object conforms, and is within one of its type, where there are any. */
export function areCovered(types: DetailTypes, inner: readonly Detail[], outer: readonly Detail[]): boolean {
  const limits = outer.filter(conformsTo(types));
  return inner.every(
    (one) =>
      conformsTo(types)(one) &&
      (!outer.some(({ type }) => type === one.type) ||
        limits.some((limit) => isWithinOne(types, one, limit))),
  );
}

/**
 * Whether the objects conform, and allow nothing that the limit does not: a type of the limit that they lack would be
 * without limit.
 */
export function isWithin(
  types: DetailTypes,
  inner: readonly Detail[] = [],
  limit: readonly Detail[] = [],
): boolean {
  return limit.every(({ type }) => inner.some((one) => one.type === type)) && areCovered(types, inner, limit);
}
