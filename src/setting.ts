/** A member of the configuration file is one row: its schema, what it is for, and whether a reload takes it. */
import * as v from "valibot";

/** A member whose changes a reload takes. `text` is what editors, `mandate init` and the reference show. */
export const setting = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.pipe(schema, v.description(text));

/** Off, unless it is set. */
export const flag = (text: string) => setting(v.optional(v.boolean(), false), `${text}; false by default.`);

/** Absent, unless it is set. */
export const maybe = <const S extends v.GenericSchema>(schema: S, text: string) =>
  setting(v.optional(schema), text);

/** Empty, unless it is set. */
export const list = <const S extends v.GenericSchema>(entry: S, text: string) =>
  setting(v.optional(v.array(entry), []), text);

const OF_START = { takenBy: "restart" } as const;

/** A member whose changes wait for a restart, as do those of the members below it. */
export const settingOfStart = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.pipe(schema, v.description(text), v.metadata(OF_START));

export const wholeFrom = (least: number) => v.pipe(v.number(), v.integer(), v.minValue(least));
export const whole = (least: number, most: number) => v.pipe(wholeFrom(least), v.maxValue(most));

/** `path`: where it stands in the file; `*` is a name of the operator's choice or an entry of a list. */
type Member = { path: string; text: string | undefined; ofStart: boolean };

/** The parts that schemas of the library have. */
type Part = v.GenericSchema & {
  entries?: Readonly<Record<string, Part>>;
  wrapped?: Part;
  item?: Part;
  value?: Part;
  options?: readonly (Part | string)[];
};

/** Every member of the schema at any depth; one that several forms have comes several times. */
export function membersOf({ entries = {}, wrapped, item, value, options = [] }: Part, path = ""): Member[] {
  const own = Object.entries(entries).flatMap(([name, member]) => {
    const at = `${path}${name}`;
    const ofStart = v.getMetadata(member).takenBy === OF_START.takenBy;
    return [{ path: at, text: v.getDescription(member), ofStart }, ...membersOf(member, `${at}.`)];
  });
  const forms = [wrapped, ...options].flatMap((part) =>
    typeof part === "object" ? membersOf(part, path) : [],
  );
  const each = [item, value].flatMap((part) => (part === undefined ? [] : membersOf(part, `${path}*.`)));
  return [...own, ...forms, ...each];
}
