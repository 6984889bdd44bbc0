/** How the subjects of a trusted issuer are named here. */
import { err, ok, type Result } from "../result.ts";
import type { SubjectMapping } from "./settings.ts";

/**
 * RFC7519-4.1.2-v1: names the subject that the issuer calls `foreign` here; the name is never that of a subject of
 * another issuer.
 */
export function nameHere(
  subjects: SubjectMapping,
  foreign: string,
): Result<string, "sub_belongs_to_another_issuer" | "sub_not_mapped"> {
  switch (subjects.kind) {
    case "keep": {
      const { reservedPrefixes, reserved } = subjects;
      const taken = reserved.has(foreign) || reservedPrefixes.some((prefix) => foreign.startsWith(prefix));
      return taken ? err("sub_belongs_to_another_issuer") : ok(foreign);
    }
    case "prefix":
      return ok(`${subjects.prefix}${foreign}`);
    case "table": {
      const sub = subjects.table.get(foreign);
      return sub === undefined ? err("sub_not_mapped") : ok(sub);
    }
  }
}
