/**
 * Types of `authorization_details` as targets declare them (RAR-D-1): how they are written, and the JSON Schema that is made
 * of one for editors. No schema is ever interpreted.
 */
import * as v from "valibot";
import { DETAIL_FIELDS_MAX, DETAIL_VALUE_BYTES_MAX, SHOWN_TEXT_CHARS_MAX } from "../limits/input.ts";
import { flag, list, maybe, setting } from "../setting.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { canonicalize } from "../spec/rfc8785.ts";
import { type Detail, readDetails } from "../spec/rfc9396.ts";
import {
  type DetailField,
  type DetailType,
  type DetailTypes,
  FIELD_FORMS,
  isComparable,
  NARROWINGS,
} from "./details.ts";
import { worded } from "./worded.ts";

const quote = (text: string): string => JSON.stringify(text);

const displayText = worded(SHOWN_TEXT_CHARS_MAX);

/** RFC9396-2.1-1: ASCII that copies without ambiguity. */
const typeName = v.pipe(
  v.string(),
  v.regex(/^[!#-[\]-~]{1,256}$/, "is not a name of printable ASCII without spaces and quotes"),
);

const fieldName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/, "is not a name: letters, digits, _ . -, a letter first"),
  v.check((name) => name !== "type" && !(name in {}), "is a reserved name"),
);

const value = v.pipe(v.string(), v.nonEmpty(), v.maxBytes(DETAIL_VALUE_BYTES_MAX));

const FieldFile = v.pipe(
  v.strictObject({
    is: setting(v.picklist(FIELD_FORMS), "What its value is; a decimal is a text such as 120.00."),
    narrows: setting(
      v.picklist(NARROWINGS),
      "How two values are compared: `max` is narrower where it is smaller, `prefix` is a path by whole segments, `only` is narrower where it is true.",
    ),
    from: maybe(
      v.pipe(v.array(value), v.minLength(1)),
      "The only values; demanded with subset. For an `equal` text also the currencies or units that there are.",
    ),
    unit: maybe(
      fieldName,
      "The field that says what an amount is of; an object with the one has the other too.",
    ),
    label: maybe(displayText, "What stands before its value on pages; its name by default."),
    private: flag("Whether the audit trail has a digest in place of its value"),
  }),
  v.check(({ is, narrows }) => isComparable(is, narrows), "has a form that cannot be compared like this"),
  v.check(
    ({ narrows, from }) => narrows !== "subset" || from !== undefined,
    'narrows by "subset" without "from": list the values, and none of them that forbids something',
  ),
);

const TypeFile = v.pipe(
  v.strictObject({
    title: maybe(displayText, "What such an object is about, as users are shown it; its name by default."),
    governs: setting(
      v.pipe(v.array(v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"))), v.minLength(1)),
      "The scopes about which such an object says more.",
    ),
    needs: list(fieldName, "The fields that every object has."),
    pushed: flag("Whether an authorization request with such an object has to be pushed (RFC 9126)"),
    fields: setting(
      v.pipe(
        v.record(fieldName, FieldFile),
        v.check((fields) => Object.keys(fields).length > 0, "is empty"),
        v.check(
          (fields) => Object.keys(fields).length <= DETAIL_FIELDS_MAX,
          `has more than ${DETAIL_FIELDS_MAX} members`,
        ),
      ),
      "Its fields by name; an object with another one is refused.",
    ),
  }),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { needs, fields } = dataset.value;
    for (const name of needs.filter((one) => !Object.hasOwn(fields, one))) {
      addIssue({ message: `"needs" names ${quote(name)}, which is none of its fields` });
    }
    for (const [name, { unit }] of Object.entries(fields)) {
      if (unit === undefined) continue;
      const beside = fields[unit];
      if (beside?.is === "string" && beside.narrows === "equal") continue;
      addIssue({
        message: `"unit" of ${quote(name)} names ${quote(unit)}, which is no field that is a string and narrows by "equal"`,
      });
    }
  }),
);
type Declared = { readonly [type: string]: v.InferOutput<typeof TypeFile> };

const text =
  "The types of `authorization_details` that it enforces, by name (RFC 9396); of every one it gets only what narrows.";
export const declaredTypes = maybe(v.record(typeName, TypeFile), text);

/** `details` of a rule, as requests send them. */
export const detailObjects = v.pipe(
  v.array(v.looseObject({ type: setting(v.string(), "Its type, one that a target declares.") })),
  v.check(
    (one) => readDetails(one as Json).ok,
    (issue) => describeMalformed(issue.input as Json[]),
  ),
  v.transform((one) => one as readonly Detail[]),
);
function describeMalformed(list: readonly Json[]): string {
  const index = list.findIndex((one) => !readDetails([one]).ok);
  if (index < 0) return "has too many objects, or too long ones";
  const { type, ...fields } = Object(list[index]);
  const wrong = Object.entries(fields).find(
    ([name, value]) => !readDetails([{ type: "t", [name]: value as Json }]).ok,
  );
  const which = wrong === undefined ? "" : `: ${quote(wrong[0])} is none of these`;
  return `object ${index} has to have a type, and fields that are texts, whole numbers, true, false or lists of different texts${which}`;
}

export const detailTypeNames = v.pipe(v.array(typeName), v.minLength(1));

export function typesOf(declared: Declared): DetailTypes {
  return new Map(
    Object.entries(declared).map(([name, { fields, ...type }]): [string, DetailType] => [
      name,
      { ...type, fields: new Map(Object.entries(fields)) } as DetailType,
    ]),
  );
}

/** RAR-D-1: the types of all targets; a name has one definition. */
export function compileTypes(
  targets: readonly { names: readonly string[]; scopes: readonly string[]; details?: Declared | undefined }[],
): { all: DetailTypes; problems: readonly string[] } {
  const all = new Map<string, DetailType>();
  const written = new Map<string, string>();
  const problems: string[] = [];
  for (const { names, scopes, details = {} } of targets) {
    const at = `targets: ${JSON.stringify(names[0])}`;
    for (const [name, type] of typesOf(details)) {
      const text = canonicalize(details[name] as unknown as Json);
      const before = written.get(name) ?? text;
      const shown = JSON.stringify(name);
      if (before !== text) problems.push(`${at} declares the type ${shown} otherwise than another target`);
      if (!type.governs.some((one) => scopes.includes(one))) {
        problems.push(`${at} has none of the scopes that its type ${shown} governs`);
      }
      written.set(name, before);
      if (!all.has(name)) all.set(name, type);
    }
  }
  return { all, problems };
}

// --- for editors ------------------------------------------------------------------------------------------------

/** The JSON Schema of the objects of one type; what it cannot say, such as the direction of a comparison, is left out. */
export function schemaOf(name: string, { fields, needs, title }: DetailType): JsonObject {
  const properties = [...fields].map(([field, is]): [string, JsonObject] => [field, schemaOfField(is)]);
  const units = [...fields].flatMap(([field, { unit }]) => (unit === undefined ? [] : [[field, [unit]]]));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: typeof title === "string" ? title : (Object.values(title ?? {})[0] ?? name),
    type: "object",
    properties: { type: { const: name }, ...Object.fromEntries(properties) },
    required: ["type", ...needs],
    dependencies: Object.fromEntries(units),
    additionalProperties: false,
  };
}

function schemaOfField({ is, from }: DetailField): JsonObject {
  const text: JsonObject = { type: "string", minLength: 1 };
  const one: JsonObject = from === undefined ? text : { enum: [...from] };
  switch (is) {
    case "string":
      return one;
    case "strings":
      return { type: "array", items: one, minItems: 1, uniqueItems: true };
    case "decimal":
      return { type: "string", pattern: "^(0|[1-9][0-9]{0,14})(\\.[0-9]{1,18})?$" };
    case "boolean":
      return { type: "boolean" };
    case "integer":
      return { type: "integer" };
    case "seconds":
      return { type: "integer", minimum: 0 };
    default:
      return is satisfies never;
  }
}
