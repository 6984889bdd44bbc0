/** How `mandate agents` is called, and the options of every list of callers. */
import type { CommandUsage, Option } from "../options.ts";

export const CALLER_OPTIONS: Readonly<Record<string, Option>> = {
  since: { value: "TIME", says: "how far back the last use is looked for (default: 90 days)" },
  limit: { value: "N", says: "the N that are idle the longest" },
  format: { value: "FORMAT", says: "text, ndjson or csv (for spreadsheets)" },
};

export const AGENTS: CommandUsage = {
  name: "agents",
  summary: "everything that may call, who answers for it, and when it last did",
  forms: [
    {
      words: "list",
      options: [...Object.keys(CALLER_OPTIONS), "json", "config"],
      says: "prints clients, workloads, partners and issuers of grants, the longest idle first",
    },
  ],
  options: {
    ...CALLER_OPTIONS,
    json: { says: "the same as --format ndjson" },
    config: { value: "FILE", says: "the configuration (default: data/config.json)" },
  },
  notes: [
    "They are those of the configuration and the store, those that rules, targets and `agents` name, and those of the newest events. A partner is used by a grant for it, an issuer by one of its own that is redeemed.",
    "Title, owner and contact are the operator's (`agents`); what a client says of itself is claimed.",
  ],
  example: "mandate agents list --format csv > agents.csv",
};
