/** The schema of the configuration file; each text is the error that an operator reads for an invalid value. */
import * as v from "valibot";
import { CHECKPOINT_EVENTS, CHECKPOINT_SECONDS, RETENTION_DAYS } from "../limits/audit.ts";
import { LEASE_SECONDS_MAX, STORE_CONNECTIONS_MAX, STORE_START_SECONDS } from "../limits/store.ts";
import { Target } from "../policy/rules.ts";
import { foreignIssuer } from "../policy/targets.ts";
import { list, maybe, setting, settingOfStart, whole, wholeFrom } from "../setting.ts";
import { AgentFile } from "../settings/agents.ts";
import { DeferralFile, DpopFile, General, LimitsFile } from "../settings/sections.ts";
import { DRAFT as DOCUMENTS_DRAFT } from "../spec/cimd.ts";
import { DRAFT as DEFERRED_DRAFT } from "../spec/deferred-token-response.ts";
import { DRAFT as ID_JAG_DRAFT } from "../spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../spec/identity-chaining.ts";
import { DRAFT as EXPIRATION_DRAFT } from "../spec/refresh-token-expiration.ts";
import { DRAFT as SPIFFE_DRAFT } from "../spec/spiffe/client-auth.ts";
import { DRAFT as TRANSACTION_DRAFT } from "../spec/transaction-tokens.ts";
import { DRAFT as WORKLOAD_DRAFT } from "../spec/workload-grant.ts";
import { ClientFile, DocumentsFile, OriginFile, RegistrationFile } from "./client-schema.ts";
import { KeysFile } from "./keys-schema.ts";
import { ListenFile, MtlsFile, OperationsFile, ProxyFile } from "./listeners-schema.ts";
import { SharingRule } from "./shared.ts";
import { AuthorizeFile, PagesFile, SignInFile } from "./sign-in-schema.ts";
import { SignalsFile } from "./signals.ts";
import { ConsentsFile, IssuerFile, TrustDomainFile } from "./trust-schema.ts";
import { checkpoints, env, oneForm, originUrl, pageOrigin, picture, remote, secret, text } from "./values.ts";

/** Our own issuer identifier: paths are appended to it (RFC6749-3.2-2), and assertions name it (B7523-4-4). */
const issuerUrl = v.pipe(
  foreignIssuer,
  v.check((url) => !url.endsWith("/"), "ends with a slash: leave it out"),
);

const startSeconds = settingOfStart(
  v.optional(whole(0, 3600), STORE_START_SECONDS),
  "How many seconds each step of the start waits for a database that does not answer, or a file that another process holds; 60 by default.",
);
const sqlite = v.strictObject({
  sqlite: settingOfStart(text, "The database file, relative to the folder of this configuration."),
  startSeconds,
});
const postgres = v.strictObject({
  postgres: settingOfStart(
    secret,
    "The connection URL of the database, such as postgres://user:password@host/database?sslmode=verify-full&sslrootcert=ca.pem. That mode verifies the server, by the authorities in sslrootcert (a file, relative to the folder of this configuration) or those of the platform.",
  ),
  connections: settingOfStart(
    v.optional(whole(1, 1_000), STORE_CONNECTIONS_MAX),
    "Connections of one instance to the database, at most; 10 by default. Under a lower limit of its role the server uses what it gets.",
  ),
  startSeconds,
});

const CheckpointFile = v.strictObject({
  events: setting(v.optional(wholeFrom(1), CHECKPOINT_EVENTS), "After this many events; 1000 by default."),
  seconds: setting(
    v.optional(whole(1, 24 * 3600), CHECKPOINT_SECONDS),
    "After this many seconds, if there are new events; 60 by default.",
  ),
});

const witnessUrl = v.strictObject({
  ...remote.entries,
  authorization: maybe(secret, "The value of the Authorization header field for the URL."),
});

const AuditFile = v.strictObject({
  /** Its value is checked by readAudit. */
  instance: settingOfStart(
    v.union([text, env], 'is neither an instance name nor { "env": … }'),
    'The name of this instance and of its log; each running instance needs its own. 1 to 63 characters of a-z, 0-9 and -. Instances that share this file have { "env": … }, and commands need the variable too.',
  ),
  leaseSeconds: settingOfStart(
    v.optional(whole(1, LEASE_SECONDS_MAX)),
    "PostgreSQL only: how many seconds the name of this instance stays taken after a crash; 5 by default.",
  ),
  checkpoint: settingOfStart(v.optional(CheckpointFile, {}), "When a checkpoint of the trail is signed."),
  witness: settingOfStart(
    v.optional(
      oneForm(
        [v.literal("stdout"), checkpoints, witnessUrl],
        'is neither "stdout", { "file": … } nor { "url": … }',
      ),
    ),
    'A place outside the database that gets every checkpoint: { "file": … }, "stdout" or { "url": … }. Beside a file stands what this instance wrote last. Without a file, a start does not notice that the store went back.',
  ),
  retentionDays: settingOfStart(
    v.optional(wholeFrom(1), RETENTION_DAYS),
    "How many days events are kept; 400 by default.",
  ),
});

const CorsFile = v.strictObject({
  origins: setting(
    v.array(pageOrigin),
    "The origins of such pages, byte for byte as a browser writes them, such as https://app.example or http://localhost:6274; none by default.",
  ),
});

const AgentEntry = v.strictObject({
  ...AgentFile.entries,
  logo: maybe(
    picture,
    "A picture that stands beside its name on pages, in place of its initials: a PNG file, which this server serves itself.",
  ),
});

const draft = v.picklist(
  [
    SPIFFE_DRAFT,
    DOCUMENTS_DRAFT,
    CHAINING_DRAFT,
    ID_JAG_DRAFT,
    WORKLOAD_DRAFT,
    DEFERRED_DRAFT,
    EXPIRATION_DRAFT,
    TRANSACTION_DRAFT,
  ],
  "is not a draft that this version follows",
);

export const ConfigFile = v.strictObject({
  $schema: maybe(v.string(), "The JSON Schema of this file, for editors; the server does not read it."),
  version: setting(v.literal(1, "is not 1"), "The version of this format: 1."),
  profile: settingOfStart(
    v.optional(v.picklist(["production", "development"]), "production"),
    'What the server demands: "production" (the default), or "development", which listens on loopback only and allows weak secrets.',
  ),
  issuer: settingOfStart(
    issuerUrl,
    "The https URL of this server, without a final slash. It is the `iss` of every token, and all endpoints and audiences begin with it.",
  ),
  listen: setting(
    ListenFile,
    "The main HTTPS listener. It asks clients for certificates unless there is `mtls` or `signIn`.",
  ),
  mtls: maybe(MtlsFile, "A second HTTPS listener, the only one that asks clients for certificates."),
  proxy: maybe(
    ProxyFile,
    "A listener for one TLS-terminating proxy, which forwards the certificates of its clients in a header field, by default Client-Cert and Client-Cert-Chain (RFC 9440). No other listener reads these.",
  ),
  operations: maybe(
    OperationsFile,
    "A plain HTTP listener for /livez, /readyz and /metrics, for the operator's tools only.",
  ),
  store: setting(
    oneForm([sqlite, postgres], 'is neither { "sqlite": … } nor { "postgres": … }'),
    'Where everything is kept: { "sqlite": FILE } for one instance, { "postgres": … } for several.',
  ),
  keys: setting(KeysFile, "The keys of this server."),
  audit: setting(AuditFile, "The audit trail."),
  ...General.entries,
  trustDomains: setting(
    v.optional(v.record(text, TrustDomainFile), {}),
    "The SPIFFE trust domains whose workloads are clients, by name.",
  ),
  trustedIssuers: setting(
    v.optional(v.record(text, IssuerFile), {}),
    "The issuers whose tokens are accepted, by their identifier (`iss`).",
  ),
  clients: setting(
    v.optional(v.record(text, ClientFile), {}),
    "The clients that are configured, by client_id.",
  ),
  agents: setting(
    v.optional(v.record(text, AgentEntry), {}),
    "By the SPIFFE ID of a workload or a prefix that ends in /*, by client_id, or by the issuer of a partner: what people are told of it, on pages and in lines. The id stands beside it everywhere.",
  ),
  registration: setting(v.optional(RegistrationFile, {}), "How clients register themselves (RFC 7591)."),
  clientMetadataDocuments: maybe(
    DocumentsFile,
    "Present: a client may be the https URL of its metadata document.",
  ),
  clientOrigins: setting(
    v.optional(v.record(originUrl, OriginFile), {}),
    "By origin: what URLs that clients supply may reach there. Without an entry, only public addresses and public authorities; in production, no entry opens loopback.",
  ),
  consents: setting(v.optional(ConsentsFile, {}), "How users manage their consents by API."),
  dpop: setting(v.optional(DpopFile, {}), "Tokens that are bound to a key by DPoP (RFC 9449)."),
  cors: setting(
    v.optional(CorsFile, { origins: [] }),
    "Which web pages may be clients: their scripts read what /token, /par, /register and /revoke answer. A web application with a backend keeps its tokens there instead.",
  ),
  signIn: maybe(
    SignInFile,
    "Present: users sign in at an OpenID Provider, and clients may ask them for access. Where it comes or goes, a restart decides whether `listen` asks for certificates.",
  ),
  authorize: setting(v.optional(AuthorizeFile, {}), "What clients that ask users may do."),
  deferral: setting(
    v.optional(DeferralFile, {}),
    "How long clients may wait for a consent of their users, instead of asking again; they may where `drafts` lists the draft of the deferred token response and users sign in here.",
  ),
  pages: setting(
    v.optional(PagesFile, {}),
    "In whose name, with which logo and colours users are shown pages.",
  ),
  limits: setting(v.optional(LimitsFile, {}), "How much one caller may ask for."),
  signals: setting(v.optional(SignalsFile, {}), "Security events about tokens that end (Shared Signals)."),
  targets: list(Target, "The resource servers, partners and trust domains that tokens are issued for."),
  policies: list(SharingRule, "The rules. A rule only allows; what no rule allows is refused."),
  drafts: list(draft, "Every Internet-Draft in use, by the revision that this version follows."),
});
export type ConfigFile = v.InferOutput<typeof ConfigFile>;
