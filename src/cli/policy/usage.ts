/** How `mandate policy` is called. */
import type { CommandUsage } from "../options.ts";

export const POLICY: CommandUsage = {
  name: "policy",
  summary: "checks a policy before it is in force, without store, secrets or keys",
  forms: [
    { words: "check", options: ["json", "config"], says: "prints the errors and warnings of a policy" },
    {
      words: "test",
      takes: ["VECTORS"],
      options: ["json", "config"],
      says: "asks the policy the questions in the file and compares the answers with the expected ones",
    },
    {
      words: "diff",
      takes: ["OLD", "NEW"],
      options: ["vectors", "fail-on", "json"],
      says: "prints what the configuration NEW newly allows and newly denies, for questions derived from the rules of both and for those in --vectors",
    },
  ],
  options: {
    vectors: { value: "VECTORS", says: "a file with further questions" },
    "fail-on": {
      value: "CHANGE",
      says: "exits with 1 if the change allows more (allow), denies more (deny), or either (any); also if a lifetime gets longer (allow) or shorter (deny), or if there were too many questions to compare them all",
    },
    json: { says: "one JSON object, for test one a line" },
    config: { value: "FILE", says: "the configuration (default: data/config.json)" },
  },
  notes: [
    'VECTORS is a file of [{ "name", "ask", "consents"?, "class"?, "expect": "allow" | "deny", "scope"?, "rule"? }].',
    '"ask" is a question as POST /policy/explain accepts it, in which exp and iat may be omitted; "consents" are the consents on record, [{ "targets": [ … ], "scope": "…" }], none by default; "class" is the class of a client that registered itself.',
  ],
  example: "mandate policy diff config.json changed.json --fail-on allow",
};
