/** A member of the configuration file is one row: its schema, and what it is for. */
import * as v from "valibot";

/** `text` is what editors, `mandate init` and the reference show. */
export const setting = <const S extends v.GenericSchema>(schema: S, text: string) =>
  v.pipe(schema, v.description(text));
