/** How `mandate policy` is called. */
import { CONFIG, type CommandUsage } from "../options.ts";

export const POLICY_COMMAND: CommandUsage = {
  name: "policy",
  summary: "checks a policy before it is in force, and decides recorded requests again",
  forms: {
    "check [json config]": "prints the errors and warnings of a policy",
    "types [config]": "prints the JSON Schema of each type of authorization_details that a target declares",
    "reach [actor issuer subject target depth format json config]":
      "prints what could ever be reached, by any order of requests: by an actor, for a subject, at a target",
    "test VECTORS [json config]":
      "asks the policy the questions in the file and compares the answers with the expected ones",
    "diff OLD NEW [vectors fail-on json]":
      "prints what the configuration NEW newly allows and newly denies, for questions derived from the rules of both and for those in --vectors",
    "impact [without-rule without-client without-domain disable issuer since until export from format config]":
      "prints whom it would hurt if a rule, a client or a trust domain were removed, or a subject disabled: which requests in the audit trail would have been refused, of whom, and when the last was",
    "replay [with since until export witness partial unverified from format config]":
      "decides the requests in the audit trail again, from the trail alone, and says which come out otherwise; with --with, by another policy",
  },
  options: {
    "vectors VECTORS": "a file with further questions",
    "fail-on CHANGE":
      "exits with 1 if the change allows more (allow), denies more (deny), or either (any); also if a lifetime gets longer (allow) or shorter (deny), or if there were too many questions to compare them all",
    "actor NAME":
      "what this client or workload, or those below a prefix, could do, also by requests of others",
    "issuer ISS": "the issuer of --subject or --disable",
    "subject SUB": "who could act for this subject",
    "target NAME": "who could reach this target, or this partner",
    "depth N": "by at most N requests",
    "format FORMAT": "text, json (with the requests, or the certificate of a no) or, for reach, mermaid",
    json: "one JSON object, for test one a line",
    "without-rule ID": "as if the rule were removed",
    "without-client CLIENT_ID": "as if this client or workload could not call",
    "without-domain NAME": "as if no workload of the trust domain could call",
    "disable SUB": "as if the subject were disabled",
    "with NEW": "a configuration: what would it have decided of each request?",
    "since TIME":
      "from this time on: in UTC, or days or hours before now, such as 30d or 12h (for impact, 30d by default)",
    "until TIME": "before this time",
    "export DIR": "the folder of an export in place of the store",
    "witness FILE": "with --export, a copy of the witness's file, which is compared with it",
    partial: "the export is a part of the trail, made with --since or --until",
    unverified: "leaves out the hash chain, which was verified before",
    "from FILE":
      "reads the trail from a copy of the database, or a standby, whose connection URL is in FILE; the look is recorded in the store of the configuration",
    ...CONFIG,
  },
  notes: [
    "impact exits with 0 if nothing would be refused or ended, and with 1 otherwise. It does not verify the trail: audit verify does.",
    "replay exits with 0 if every request comes out the same, with 1 if one does not, and with 2 if the trail or its archive of policies is not as it was recorded; then nothing is decided.",
    'VECTORS is a file of [{ "name", "ask", "consents"?, "class"?, "expect": "allow" | "deny", "scope"?, "rule"? }], and of { "name", "never": { "actor", "target" } } for what no order of requests may lead to.',
    '"ask" is a question as POST /policy/explain accepts it, in which exp and iat may be omitted; "consents" are the consents on record, [{ "targets": [ … ], "scope": "…" }], none by default; "class" is the class of a client that registered itself.',
  ],
  example: "mandate policy diff config.json changed.json --fail-on allow",
};
