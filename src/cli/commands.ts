/** The table of commands. A row says how the command is called; its code is loaded when it is. */
import { AUDIT } from "./audit/usage.ts";
import { AGENTS } from "./callers/usage.ts";
import { CLIENTS } from "./clients/usage.ts";
import type { CommandRow } from "./command.ts";
import { INIT } from "./init/usage.ts";
import { KEYS } from "./keys/usage.ts";
import type { CommandUsage } from "./options.ts";
import { POLICY } from "./policy/usage.ts";

const config = { value: "FILE", says: "the configuration (default: data/config.json)" } as const;

/** The command that runs without a name; main.ts runs it. */
export const SERVE: CommandUsage = {
  name: "serve",
  summary: "starts the server; what `mandate` does without a command",
  forms: [{ words: "", options: ["config"], says: "serves until SIGTERM or SIGINT; SIGHUP reloads" }],
  options: { config },
  notes: ["File names in the configuration are relative to its folder."],
  example: "mandate serve --config /etc/mandate/config.json",
};

const CONSENTS: CommandUsage = {
  name: "consents",
  summary: "adds, lists and withdraws consents of subjects",
  forms: [
    {
      words: "add",
      requires: ["issuer", "subject", "actor", "target", "scope"],
      options: ["expires", "config"],
      says: "records the consent of a subject and prints its id",
    },
    {
      words: "list",
      options: ["issuer", "subject", "json", "config"],
      says: "prints consents, one line each",
    },
    {
      words: "withdraw",
      takes: ["ID"],
      options: ["config"],
      says: "withdraws a consent and revokes the tokens issued under it",
    },
  ],
  options: {
    issuer: { value: "ISS", says: "the issuer that the subject comes from" },
    subject: { value: "SUB", says: "the subject's name at that issuer" },
    actor: { value: "SPIFFE_ID", says: "the workload that may act" },
    target: { value: "NAME", many: true, says: "a target where it may act" },
    scope: { value: '"SCOPE …"', says: "what it may do there" },
    expires: { value: "SECONDS", says: "when the consent ends; without it, when it is withdrawn" },
    json: { says: "one JSON object a line" },
    config,
  },
  notes: [],
  example:
    'mandate consents add --issuer https://idp.example --subject alice --actor spiffe://td.example/agents/planner --target https://api.example --scope "trips.read"',
};

const EXPLAIN: CommandUsage = {
  name: "explain",
  summary: "prints what the token endpoint would answer to a question, and why",
  forms: [{ words: "", takes: ["FILE"], options: ["json", "config"], says: "answers the question in FILE" }],
  options: { json: { says: "the answer as one JSON object" }, config },
  notes: ["The question is one as POST /policy/explain accepts it. The audit trail records it."],
  example: "mandate explain question.json",
};

const BACKUP: CommandUsage = {
  name: "backup",
  summary: "copies the SQLite store while the server runs; marks a store that was restored",
  forms: [
    { words: "", takes: ["FILE"], options: ["config"], says: "writes a copy of the store into a new file" },
    {
      words: "mark-restored",
      options: ["config"],
      says: "marks the store as a restored copy, because PostgreSQL's tools do not; the next start then ends what was issued",
    },
  ],
  options: { config },
  notes: [
    "The first start on a restored copy ends every token that was issued, and answers no request until assertions that may have been used have expired, because the copy does not know them.",
  ],
  example: "mandate backup /backup/mandate.sqlite --config /etc/mandate/config.json",
};

const MIGRATE: CommandUsage = {
  name: "migrate",
  summary: "brings the tables of the store up to this version",
  forms: [
    {
      words: "",
      options: ["dry-run", "config"],
      says: "makes and changes tables as the first start of this version would; servers of the version before keep running meanwhile",
    },
  ],
  options: { "dry-run": { says: "prints the SQL instead, and changes nothing" }, config },
  notes: [
    "For a database whose tables belong to another role than the one that serves: run it with a configuration whose `store.postgres` is the URL of their owner.",
  ],
  example: "mandate migrate --dry-run --config /etc/mandate/owner.json",
};

const TOKENS_END = [
  "jti",
  "issuer",
  "subject",
  "actor",
  "client",
  "trust-domain",
  "rule",
  "consent",
  "grant",
  "all-refresh",
  "everything",
  "up-to",
  "disable",
  "dry-run",
  "json",
  "config",
];

const TOKENS: CommandUsage = {
  name: "tokens",
  summary: "ends tokens by what they have in common, shows one, and lists disabled subjects",
  forms: [
    {
      words: "end",
      options: TOKENS_END,
      says: "ends the tokens that one selector names, with every token that descends from them, on every instance",
    },
    {
      words: "enable",
      options: ["issuer", "subject", "json", "config"],
      says: "lets a subject in again that --disable, the API or its issuer keeps out; what it had stays ended",
    },
    {
      words: "disabled",
      options: ["format", "json", "config"],
      says: "prints the event that disabled each subject that is disabled now by command, by the API or by its issuer",
    },
    {
      words: "show",
      takes: ["JTI"],
      options: ["json", "config"],
      says: "prints a token and its ancestors, oldest first, and whether it is still valid",
    },
  ],
  options: {
    jti: { value: "JTI", says: "selects one token" },
    issuer: { value: "ISS", says: "selects the subjects of an issuer; with --subject, one of them" },
    subject: { value: "SUB", says: "the subject's name at that issuer; requires --issuer" },
    actor: { value: "SPIFFE_ID", says: "selects what an agent holds" },
    client: { value: "CLIENT_ID", says: "selects what a client was issued" },
    "trust-domain": { value: "NAME", says: "selects what the workloads of a trust domain hold" },
    rule: { value: "ID", says: "selects what a rule allowed" },
    consent: { value: "ID", says: "selects what was issued under a consent" },
    grant: {
      value: "ID",
      says: "selects what a user gave to a client by one click, with its refresh tokens",
    },
    "all-refresh": {
      says: "selects what every user gave by a click, with its refresh tokens, as after a backup was restored",
    },
    everything: { says: "selects all that was issued until now, or up to --up-to" },
    "up-to": { value: "TIME", says: "a time like 2026-11-21T08:00:00Z; requires --everything or --subject" },
    disable: {
      says: "keeps the subject out too, on every instance, until it is enabled; requires --subject",
    },
    "dry-run": { says: "prints the tokens instead, and ends none" },
    format: { value: "FORMAT", says: "text, ndjson (each event as it is stored) or csv (for spreadsheets)" },
    json: { says: "one JSON object; with --dry-run, one a line for each token; of events, --format ndjson" },
    config,
  },
  notes: ["The audit trail records every use."],
  example: "mandate tokens end --actor spiffe://td.example/agents/planner --dry-run",
};

const TRUST: CommandUsage = {
  name: "trust",
  summary: "shows the trust bundles and key sets of others, and fetches one now",
  forms: [
    {
      words: "list",
      options: ["json", "config"],
      says: "prints the last good copy of each, its age, its keys, and when a bundle is fetched again",
    },
    {
      words: "fetch",
      takes: ["NAME"],
      options: ["json", "config"],
      says: "fetches the bundle or key set of a trust domain, issuer or client now, and compares it with the stored copy",
    },
  ],
  options: { json: { says: "one JSON object a line" }, config },
  notes: ["It changes nothing: the servers fetch by themselves, and fetch everything again at SIGHUP."],
  example: "mandate trust fetch td.example --config /etc/mandate/config.json",
};

const CHECK: CommandUsage = {
  name: "check",
  summary: "reads the configuration as serve would, with store, files and servers, and says what to do",
  forms: [{ words: "", options: ["json", "config"], says: "prints a line for each thing it looked at" }],
  options: { json: { says: "one JSON object a line: level, where, says" }, config },
  notes: [
    "It opens what the configuration names, connects to the store, fetches bundles, keys and the metadata of providers, tries the ports, compares the certificates with the hosts of the URLs and follows their chain, compares the clock with the database's, and warns of what ends within 14 days. It changes nothing, and names what it did not look at.",
    "It prints the flags of Node's permission model that a server with this configuration needs; under the flags of a unit, it names those that are missing.",
  ],
  example: "mandate check --config /etc/mandate/config.json",
};

const CONFIG_SCHEMA: CommandUsage = {
  name: "config-schema",
  summary: "prints the JSON Schema of the configuration, for editors",
  forms: [{ words: "", says: "prints the schema; the server checks more than it can say" }],
  options: {},
  notes: [],
  example: "mandate config-schema > config.schema.json",
};

export const COMMANDS: readonly CommandRow[] = [
  { usage: AGENTS, load: async () => (await import("./callers.ts")).agentsCommand },
  { usage: AUDIT, load: async () => (await import("./audit.ts")).auditCommand },
  { usage: BACKUP, load: async () => (await import("./backup.ts")).backupCommand },
  { usage: CHECK, load: async () => (await import("./check.ts")).checkCommand },
  { usage: CLIENTS, load: async () => (await import("./clients.ts")).clientsCommand },
  { usage: CONFIG_SCHEMA, load: async () => (await import("./config-schema.ts")).configSchemaCommand },
  { usage: CONSENTS, load: async () => (await import("./consents.ts")).consentsCommand },
  { usage: EXPLAIN, load: async () => (await import("./explain.ts")).explainCommand },
  { usage: INIT, load: async () => (await import("./init.ts")).initCommand },
  { usage: KEYS, load: async () => (await import("./keys.ts")).keysCommand },
  { usage: MIGRATE, load: async () => (await import("./migrate.ts")).migrateCommand },
  { usage: POLICY, load: async () => (await import("./policy.ts")).policyCommand },
  { usage: TOKENS, load: async () => (await import("./tokens.ts")).tokensCommand },
  { usage: TRUST, load: async () => (await import("./trust.ts")).trustCommand },
];
