/** What does not fit between the register, the code and the tests. */
import { findStaleReasons, NOT_BUILT } from "./capabilities.ts";
import {
  allClauses,
  CAPABILITIES,
  type Clause,
  findLines,
  ID,
  idFinder,
  isBinding,
  isMet,
  isServer,
  needsTest,
  type Register,
  STATUSES,
  type Tree,
} from "./register.ts";
import type { Evidence } from "./report.ts";

const LEVEL = /^(?:(?:(?:MUST|SHOULD)(?: NOT)?|MAY)†?|DECIDE)$/;
const ENFORCED = new RegExp(`^(?:(?:structure|platform): \\S.*|row ${ID}(?:, ${ID})*)$`);
const REASON = /^(?:structure|platform): /;

/** The rows that enforce a clause, where `enforced` names rows. */
const enforcers = ({ enforced }: Clause): string[] =>
  enforced?.startsWith("row ") ? enforced.slice("row ".length).split(", ") : [];

/** The worst that is known of the tests of a clause, or of those that it restates. */
function outcomeOf(evidence: Evidence, { id, same = [] }: Clause) {
  const restated = same.length > 0 && same.every((other) => evidence.has(other)) ? same : [];
  const known = (evidence.has(id) ? [id] : restated).map((other) => evidence.get(other));
  return known.find((outcome) => outcome !== "passed" && outcome !== "named") ?? known[0];
}

/** Everything that does not fit, one line each. */
export function findProblems(
  register: Register,
  { code, tests }: Pick<Tree, "code" | "tests">,
  evidence: Evidence,
): string[] {
  const found: string[] = [];
  const capabilities = new Set([...CAPABILITIES, ...NOT_BUILT.values()]);
  const byId = new Map<string, Clause>();
  for (const clause of allClauses(register)) {
    const { id, level, status, note, enforced, untested, stricter } = clause;
    const check = (fits: boolean, problem: string) => fits || found.push(`${id}: ${problem}`);
    const outcome = outcomeOf(evidence, clause);
    const met = outcome === "passed" || outcome === "named";
    check(!byId.has(id), "is in the register twice");
    byId.set(id, clause);
    check(new RegExp(`^${ID}$`).test(id), "is not an id");
    check(LEVEL.test(level), `has an unknown level, ${level}`);
    check(STATUSES.includes(status), `has an unknown status, ${status}`);
    check(!isMet(clause) || outcome !== "failed", `is ${status}, but a test that names it failed`);
    check(!needsTest(clause) || outcome !== undefined, `is ${status}, but no test names it`);
    check(!needsTest(clause) || outcome !== "not run here", `is ${status}, but its test could not run here`);
    check(untested === undefined || status === "decision", `says why no test shows it, but is ${status}`);
    check(untested === undefined || outcome === undefined, "says that no test can show it, but one names it");
    check(stricter === undefined || status === "exception", `says that it is stricter, but is ${status}`);
    check(status !== "planned" || !met, "is planned, but a test names it: set it to tested");
    check(isMet(clause) || Boolean(note), `is ${status} without a note`);
    check(status !== "planned" || !note || capabilities.has(note), `has an unknown capability, ${note}`);
    check(enforced === undefined || isMet(clause), `says what enforces it, but is ${status}`);
    check(enforced === undefined || ENFORCED.test(enforced), `says unclearly what enforces it, ${enforced}`);
  }
  const lines = findLines(
    register,
    code.filter(({ file }) => isServer(file)),
  );
  const hasLineOrReason = (id: string) => lines.has(id) || REASON.test(byId.get(id)?.enforced ?? "");
  const isEnforced = (id: string) => lines.has(id) || byId.get(id)?.enforced !== undefined;
  for (const clause of byId.values()) {
    const isRule = needsTest(clause) && isBinding(clause);
    if (isRule && !isEnforced(clause.id) && !clause.same?.every(isEnforced))
      found.push(`${clause.id}: is ${clause.status}, but no line, row or reason says what enforces it`);
    for (const id of [...(clause.same ?? []), ...enforcers(clause)]) {
      if (!byId.has(id)) found.push(`${clause.id}: ${id} is not in the register`);
    }
    for (const id of enforcers(clause)) {
      const enforcer = byId.get(id);
      if (enforcer === undefined || !isMet(enforcer))
        found.push(`${clause.id}: is enforced by ${id}, which is not tested`);
      else if (!hasLineOrReason(id))
        found.push(`${clause.id}: is enforced by ${id}, which has neither a line nor a reason`);
    }
  }
  const findIds = idFinder(register);
  for (const { file, text } of [...code, ...tests]) {
    for (const id of new Set(findIds(text))) {
      if (!byId.has(id)) found.push(`${file}: ${id} is not in the register`);
    }
  }
  return [...found, ...findStaleReasons([...byId.values()])];
}
