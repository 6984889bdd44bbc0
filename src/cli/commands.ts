/** The table of commands. A row says how the command is called; its code is loaded when it is. */
import { FILTERS } from "../audit/filters.ts";
import type { CommandRow } from "./command.ts";
import { INIT } from "./init/usage.ts";
import { JOBS } from "./jobs/usage.ts";
import { CONFIG, type CommandUsage, namesOf } from "./options.ts";
import { POLICY_COMMAND } from "./policy/usage.ts";
import { REPORT } from "./report/usage.ts";

/** The command that --config alone means; main.ts runs it. */
export const SERVE: CommandUsage = {
  name: "serve",
  summary: "starts the server; what `mandate --config FILE` does without a command",
  forms: {
    "[config]": "serves until SIGTERM or SIGINT; SIGHUP reloads",
  },
  options: {
    ...CONFIG,
  },
  notes: ["File names in the configuration are relative to its folder."],
  example: "mandate serve --config /etc/mandate/config.json",
};

/** The options of every list of callers. */
const CALLER_OPTIONS = {
  "since TIME": "how far back the last use is looked for (default: 90 days)",
  "limit N": "the N that are idle the longest",
  "format FORMAT": "text, ndjson or csv (for spreadsheets)",
};

const AGENTS: CommandUsage = {
  name: "agents",
  summary: "everything that may call, who answers for it, and when it last did",
  forms: {
    [`list [${namesOf(CALLER_OPTIONS)} json config]`]:
      "prints clients, workloads, partners and issuers of grants, the longest idle first",
    "explain TOKEN [json config]":
      "prints which workload a JWT of a platform or a JWT-SVID is here, what its name is made of, and which rules name it",
  },
  options: {
    ...CALLER_OPTIONS,
    json: "one JSON object; in the list, the same as --format ndjson",
    ...CONFIG,
  },
  notes: [
    "TOKEN is the token, a file that has it, or - for standard input; other users of the machine may see the arguments of a command. It is neither verified nor recorded.",
    "They are those of the configuration and the store, those that rules, targets and `agents` name, and those of the newest events. A partner is used by a grant for it, an issuer by one of its own that is redeemed.",
    "Title, owner and contact are the operator's (`agents`); what a client says of itself is claimed.",
  ],
  example: "mandate agents list --format csv > agents.csv",
};

/** Those of the filters of `GET /audit/events`. */
const FILTER_OPTIONS = Object.fromEntries(
  Object.values(FILTERS).flatMap(({ option }) =>
    option === undefined ? [] : [[`${option.name} ${option.value}`, option.says]],
  ),
);

const AUDIT: CommandUsage = {
  name: "audit",
  summary: "prints, exports, proves and verifies the audit trail, and ends the log of an instance",
  forms: {
    [`[${namesOf(FILTER_OPTIONS)} log limit jti summary format json from config]`]:
      "prints all events, or those that the options choose, oldest first",
    "export DIR [since until from config]":
      "writes the trail, its checkpoints, their public keys and the policies that decided into a new or empty folder, to be verified elsewhere",
    "verify [export checkpoints witness jwks policies partial json from config]":
      "verifies the hash chain of every log in the store; with --export, an export without the store",
    "receipt ID [of-job chain rest config]":
      "prints what proves to others that the token with this jti was issued, or the events of a job",
    "keys [config]": "prints the key of each log, as verifiers of receipts take it",
    "retire NAME [config]":
      "ends the log of an instance that is gone for good; no instance can have this name again",
  },
  options: {
    ...FILTER_OPTIONS,
    "log NAME": "the log of one instance",
    "limit N": "the last N events",
    summary: "counts the events by day, agent, outcome, reason and question, in place of printing them",
    "jti JTI": "the events of a token and of its ancestors; can be combined with --format and --config only",
    "format FORMAT":
      "text, ndjson (each event as it is stored), csv (for spreadsheets) or ocsf (for security tools, OCSF 1.6.0)",
    json: "the same as --format ndjson; each result as one JSON object a line",
    "export FILE":
      "events.ndjson of an export, or all pages of GET /audit/events as application/x-ndjson, without filters",
    "checkpoints FILE":
      "checkpoints.ndjson of an export, or all pages of GET /audit/checkpoints as application/x-ndjson",
    "witness FILE": "what the witness stored: its file, or the lines of standard output",
    "jwks FILE":
      "the public keys of the checkpoints: jwks.json of an export, or GET /audit/checkpoints as application/json, fetched once and kept apart from the database",
    "policies FILE": "policies.ndjson of an export: the policies by which its events were decided",
    "of-job": "the receipts of all events of the job with this id",
    chain: "shows the chain, too: subject, actors, mode, consent, target, scope",
    rest: "shows all else that the event says",
    partial: "the export is a part of the trail, made with --since or --until",
    "from FILE":
      "reads the trail from a copy of the database, or a standby, whose connection URL is in FILE; the look is recorded in the store of the configuration",
    ...CONFIG,
  },
  notes: [
    "The audit trail records that it was read or verified in the store, and by which user of this machine.",
    "Fetch the export after the checkpoints and the witness's file: a later checkpoint covers records that the export does not have.",
  ],
  example: "mandate audit --type token_exchange.denied --limit 20",
};

const BACKUP: CommandUsage = {
  name: "backup",
  summary: "copies the SQLite store while the server runs; marks a store that was restored",
  forms: {
    "FILE [config]": "writes a copy of the store into a new file",
    "mark-restored [config]":
      "marks the store as a restored copy, because PostgreSQL's tools do not; the next start then ends what was issued",
  },
  options: {
    ...CONFIG,
  },
  notes: [
    "The first start on a restored copy ends every token that was issued, and answers no request until assertions that may have been used have expired, because the copy does not know them.",
  ],
  example: "mandate backup /backup/mandate.sqlite --config /etc/mandate/config.json",
};

const CHECK: CommandUsage = {
  name: "check",
  summary: "reads the configuration as serve would, with store, files and servers, and says what to do",
  forms: {
    "[json config]": "prints a line for each thing it looked at",
  },
  options: {
    json: "one JSON object a line: level, where, says",
    ...CONFIG,
  },
  notes: [
    "It opens what the configuration names, connects to the store, fetches bundles, keys and the metadata of providers, tries the ports, compares the certificates with the hosts of the URLs and follows their chain, compares the clock with the database's, and warns of what ends within 14 days. It changes nothing, and names what it did not look at.",
    "It prints the flags of Node's permission model that a server with this configuration needs; under the flags of a unit, it names those that are missing.",
  ],
  example: "mandate check --config /etc/mandate/config.json",
};

const CLIENTS: CommandUsage = {
  name: "clients",
  summary: "clients with a secret and initial access tokens, which the store keeps",
  forms: {
    "create [method grant-type workload default-target expires json config]":
      "creates a client and prints its client_id and secret",
    "rotate CLIENT_ID [overlap expires json config]":
      "creates another secret and prints it; the older secrets stay valid for the overlap",
    "disable CLIENT_ID [config]": "disables a client permanently, and revokes its tokens",
    [`list [${namesOf(CALLER_OPTIONS)} json config]`]:
      "prints the clients of the configuration, those created here or registered, and documents, the longest idle first",
    "initial-token create --class [grant-type scope uses expires json config]":
      "creates an initial access token for POST /register and prints it",
    "initial-token revoke ID [config]": "ends registration with this token; registered clients stay",
    "initial-token list [json config]": "prints the initial access tokens, without their values",
  },
  options: {
    "method METHOD":
      "client_secret (the default: by HTTP Basic or in the body), or one of the two alone: client_secret_basic, client_secret_post",
    "grant-type TYPE …":
      "a grant type as in RFC 7591, such as client_credentials; without it, all that are served",
    "workload SPIFFE_ID": "the workload that the client is",
    "default-target NAME": "the target of a request that names none",
    "expires SECONDS":
      "when the secret or token expires; without it, a secret is valid until it is rotated out, and an initial access token for one day",
    "overlap SECONDS": "how long the older secrets stay valid (default: 86400; 0 ends them at once)",
    "class NAME": "the class by which policy rules name the clients that register with the token",
    'scope "SCOPE …"': "the scopes that clients of this token can have at most",
    "uses N": "how many clients may register with the token (default: 1)",
    ...CALLER_OPTIONS,
    json: "one JSON object, in a list one a line",
    ...CONFIG,
  },
  notes: [
    "A secret is printed once and stored as a digest.",
    "A client gets no token until a policy rule names it, its class or its workload.",
  ],
  example: "mandate clients create --grant-type client_credentials",
};

const CONFIG_SCHEMA: CommandUsage = {
  name: "config-schema",
  summary: "prints the JSON Schema of the configuration, for editors",
  forms: {
    "": "prints the schema; the server checks more than it can say",
  },
  options: {},
  notes: [],
  example: "mandate config-schema > config.schema.json",
};

const CONSENTS: CommandUsage = {
  name: "consents",
  summary: "adds, lists and withdraws consents of subjects",
  forms: {
    "add --issuer --subject --actor --target --scope [expires config]":
      "records the consent of a subject and prints its id",
    "list [issuer subject json config]": "prints consents, one line each",
    "withdraw ID [config]": "withdraws a consent and revokes the tokens issued under it",
  },
  options: {
    "issuer ISS": "the issuer that the subject comes from",
    "subject SUB": "the subject's name at that issuer",
    "actor SPIFFE_ID": "the workload that may act",
    "target NAME …": "a target where it may act",
    'scope "SCOPE …"': "what it may do there",
    "expires SECONDS": "when the consent ends; without it, when it is withdrawn",
    json: "one JSON object a line",
    ...CONFIG,
  },
  notes: [],
  example:
    'mandate consents add --issuer https://idp.example --subject alice --actor spiffe://td.example/agents/planner --target https://api.example --scope "trips.read"',
};

const EXPLAIN: CommandUsage = {
  name: "explain",
  summary: "prints what the token endpoint would answer to a question, and why",
  forms: {
    "FILE [json config]": "answers the question in FILE",
  },
  options: {
    json: "the answer as one JSON object",
    ...CONFIG,
  },
  notes: [
    "The question is one as POST /policy/explain accepts it. The audit trail records it.",
    "A refusal of the policy comes with the smallest change that would have allowed it (a rule's member, a consent, a scope, an audience, a registration): a suggestion, which the endpoint does not tell.",
  ],
  example: "mandate explain question.json",
};

const KEYS: CommandUsage = {
  name: "keys",
  summary: "the signing keys of this server, and the key that they are encrypted with",
  forms: {
    "list [json config]": "prints the keys and when each changes",
    "rotate [purpose alg json config]":
      "lets the announced keys sign in place of the active ones, once they have been announced for keys.announceSeconds",
    "withdraw KID [dry-run json config]":
      "is for a key that leaked: ends all tokens that it signed, removes it from /jwks, and lets the announced key sign, at once and on every instance",
    "reencrypt [json config]":
      "encrypts the stored keys with keys.encryptionKey where they still need keys.otherEncryptionKey",
    "new-encryption-key FILE":
      "writes a new key-encryption key, for keys.encryptionKey, into a new file that only this user may read",
  },
  options: {
    "purpose PURPOSE": "token, grant or checkpoint; without it, the keys of tokens and grants",
    "alg ALG": "only the keys of this algorithm, such as ES256",
    "dry-run": "prints how many tokens would end, and changes nothing",
    json: "one JSON object, in a list one a line",
    ...CONFIG,
  },
  notes: [
    "Servers need not be stopped: each reads the keys every two seconds.",
    "The audit trail records every change of a key.",
  ],
  example: "mandate keys rotate --purpose token",
};

const MIGRATE: CommandUsage = {
  name: "migrate",
  summary: "brings the tables of the store up to this version",
  forms: {
    "[dry-run config]":
      "makes and changes tables as the first start of this version would; servers of the version before keep running meanwhile",
  },
  options: {
    "dry-run": "prints the SQL instead, and changes nothing",
    ...CONFIG,
  },
  notes: [
    "For a database whose tables belong to another role than the one that serves: run it with a configuration whose `store.postgres` is the URL of their owner.",
  ],
  example: "mandate migrate --dry-run --config /etc/mandate/owner.json",
};

const PROBE: CommandUsage = {
  name: "probe",
  summary: "asks a running server, as a caller without credentials, for what it must refuse",
  forms: {
    "URL [ca connect json metrics]":
      "sends requests that the rules of the documents forbid to the server with this issuer, and compares the answers",
  },
  options: {
    "ca FILE": "PEM of an authority to trust beside those of this machine",
    "connect HOST:PORT": "connects there instead, such as to one instance behind a balancer",
    json: "one JSON object a line: clause, asks, outcome, wants, got",
    metrics: "the counts alone, for the textfile collector of Prometheus",
  },
  notes: [
    "It only reads: a server that keeps its rules issues and changes nothing for it. Its refusals stand in the log and the trail of the server, and count as failures of this machine: at most one run in a minute.",
    "Exit code 0: each rule that could be asked for is kept. 1: one is broken. 3: the server does not answer, or told it to wait, so that something was not judged.",
  ],
  example: "mandate probe https://as.example",
};

const SELECTORS = "jti issuer subject actor client trust-domain rule consent grant all-refresh everything";

const TOKENS: CommandUsage = {
  name: "tokens",
  summary: "ends tokens by what they have in common, shows one, and lists disabled subjects",
  forms: {
    [`end [${SELECTORS} up-to disable dry-run json config]`]:
      "ends the tokens that one selector names, with every token that descends from them, on every instance",
    "enable --issuer --subject [json config]":
      "lets a subject in again that --disable, the API or its issuer keeps out; what it had stays ended",
    "disabled [format json config]":
      "prints the event that disabled each subject that is disabled now by command, by the API or by its issuer",
    "show JTI [json config]": "prints a token and its ancestors, oldest first, and whether it is still valid",
  },
  options: {
    "jti JTI": "selects one token",
    "issuer ISS": "selects the subjects of an issuer; with --subject, one of them",
    "subject SUB": "the subject's name at that issuer; requires --issuer",
    "actor SPIFFE_ID": "selects what an agent holds",
    "client CLIENT_ID": "selects what a client was issued",
    "trust-domain NAME": "selects what the workloads of a trust domain hold",
    "rule ID": "selects what a rule allowed",
    "consent ID": "selects what was issued under a consent",
    "grant ID": "selects what a user gave to a client by one click, with its refresh tokens",
    "all-refresh":
      "selects what every user gave by a click, with its refresh tokens, as after a backup was restored",
    everything: "selects all that was issued until now, or up to --up-to",
    "up-to TIME": "a time like 2026-11-21T08:00:00Z; requires --everything or --subject",
    disable: "keeps the subject out too, on every instance, until it is enabled; requires --subject",
    "dry-run": "prints the tokens instead, and ends none",
    "format FORMAT": "text, ndjson (each event as it is stored) or csv (for spreadsheets)",
    json: "one JSON object; with --dry-run, one a line for each token; of events, --format ndjson",
    ...CONFIG,
  },
  notes: ["The audit trail records every use."],
  example: "mandate tokens end --actor spiffe://td.example/agents/planner --dry-run",
};

const TRUST: CommandUsage = {
  name: "trust",
  summary: "shows the trust bundles and key sets of others, and fetches one now",
  forms: {
    "list [json config]":
      "prints the last good copy of each, its age, its keys, and when a bundle is fetched again",
    "fetch NAME [json config]":
      "fetches the bundle or key set of a trust domain, issuer or client now, and compares it with the stored copy",
  },
  options: {
    json: "one JSON object a line",
    ...CONFIG,
  },
  notes: ["It changes nothing: the servers fetch by themselves, and fetch everything again at SIGHUP."],
  example: "mandate trust fetch td.example --config /etc/mandate/config.json",
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
  { usage: JOBS, load: async () => (await import("./jobs.ts")).jobsCommand },
  { usage: KEYS, load: async () => (await import("./keys.ts")).keysCommand },
  { usage: MIGRATE, load: async () => (await import("./migrate.ts")).migrateCommand },
  { usage: POLICY_COMMAND, load: async () => (await import("./policy.ts")).policyCommand },
  { usage: PROBE, load: async () => (await import("./probe.ts")).probeCommand },
  { usage: REPORT, load: async () => (await import("./report/command.ts")).reportCommand },
  { usage: TOKENS, load: async () => (await import("./tokens.ts")).tokensCommand },
  { usage: TRUST, load: async () => (await import("./trust.ts")).trustCommand },
];
