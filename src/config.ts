/**
 * The configuration: one JSON file, described by one schema. The only reader of the environment. A wrong file
 * comes back as a list of problems, each with its path, in plain words.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import * as v from "valibot";
import { compilePolicy, Rule, Target } from "./policy/rules.ts";
import type {
  Client,
  RemoteDocument,
  Settings,
  SubjectMapping,
  TrustDomain,
  TrustedIssuer,
} from "./ports.ts";
import type { Result } from "./result.ts";
import { err, ok } from "./result.ts";
import type { Json } from "./spec/json.ts";
import { parseJson } from "./spec/json.ts";
import { CLAIMS_DEPTH_MAX, SKEW_SECONDS } from "./spec/limits.ts";
import { isNetwork, opensLoopback, parseFetchUrl } from "./spec/outbound.ts";
import { CLIENT_CREDENTIALS } from "./spec/rfc6749.ts";
import { TOKEN_EXCHANGE } from "./spec/rfc8693.ts";
import { ASSERTION_ALGORITHMS } from "./spec/rfc8725.ts";
import { canonicalize } from "./spec/rfc8785.ts";
import { DRAFT as SPIFFE_DRAFT } from "./spec/spiffe/client-auth.ts";
import { isTrustDomainName, parsePattern, parseSpiffeId } from "./spec/spiffe/id.ts";

// --- the file ---------------------------------------------------------------------------------------------------

const text = v.pipe(v.string(), v.nonEmpty("is empty"));
const file = v.strictObject({ file: text });
/** From a file or the environment; inline only where nothing is worth stealing (development). */
const secret = v.union(
  [file, v.strictObject({ env: text }), text],
  'is neither { "file": … } nor { "env": … }',
);
const httpsUrl = v.pipe(
  v.string(),
  v.check((url) => parseFetchUrl(url).ok, "is not a plain https URL in its usual spelling"),
);
/** RFC8414-2-1: no query, no fragment, and no slash at its end, because it is compared byte for byte. */
const issuerUrl = v.pipe(
  httpsUrl,
  v.check((url) => !/[?#]|\/$/.test(url), "has a query, a fragment or a slash at its end"),
);
const workloadId = v.pipe(
  v.string(),
  v.check((id) => parsePattern(id).ok && parseSpiffeId(id).ok, "is not the SPIFFE ID of a workload"),
);
const pattern = v.pipe(
  v.string(),
  v.check((one) => parsePattern(one).ok, "is neither a SPIFFE ID nor a prefix of one that ends in /*"),
);
const remote = v.strictObject({
  url: httpsUrl,
  ca: v.optional(file),
  privateNetworks: v.optional(
    v.array(v.pipe(v.string(), v.check(isNetwork, "is not a network in CIDR form"))),
    [],
  ),
});
const port = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65535));
const seconds = v.pipe(v.number(), v.integer(), v.minValue(1));

const ClientFile = v.strictObject({
  method: v.picklist(["client_secret_basic", "client_secret_post"]),
  secrets: v.pipe(v.array(secret), v.minLength(1, "has no secret")),
  grantTypes: v.optional(v.array(v.picklist([CLIENT_CREDENTIALS, TOKEN_EXCHANGE])), [
    CLIENT_CREDENTIALS,
    TOKEN_EXCHANGE,
  ]),
  workload: v.optional(workloadId),
  defaultTarget: v.optional(text),
});

const TrustDomainFile = v.strictObject({
  bundle: v.union([file, remote], 'is neither { "file": … } nor { "url": … }'),
  admit: v.optional(
    v.union([v.picklist(["all", "none"]), v.array(pattern)], 'is neither "all", "none" nor a list'),
    "all",
  ),
  requireClientId: v.optional(v.boolean(), false),
});

const IssuerFile = v.strictObject({
  keys: remote,
  audiences: v.optional(v.pipe(v.array(text), v.minLength(1))),
  acceptAs: v.optional(v.array(v.picklist(["jwt", "id_token"])), ["jwt"]),
  types: v.optional(v.array(v.nullable(text)), [null, "JWT"]),
  algorithms: v.optional(v.array(v.picklist(ASSERTION_ALGORITHMS)), ["ES256"]),
  subjects: v.union(
    [v.literal("keep"), v.strictObject({ prefix: text }), v.strictObject({ table: v.record(text, text) })],
    'is neither "keep", { "prefix": … } nor { "table": … }',
  ),
  scopes: v.optional(v.array(text), []),
  maxAgeSeconds: v.optional(seconds),
});

export const ConfigFile = v.strictObject({
  $schema: v.optional(v.string()),
  version: v.literal(1, "is not 1"),
  profile: v.optional(v.picklist(["production", "development"]), "production"),
  issuer: issuerUrl,
  listen: v.strictObject({ host: text, port, tls: v.strictObject({ key: file, cert: file }) }),
  store: v.union(
    [v.strictObject({ sqlite: text }), v.strictObject({ postgres: secret })],
    'is neither { "sqlite": … } nor { "postgres": … }',
  ),
  keys: v.strictObject({ encryptionKey: secret }),
  audit: v.strictObject({
    instance: v.pipe(text, v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "is not a short name")),
  }),
  assertionAudience: v.optional(
    v.picklist(["issuer", "issuer-or-token-endpoint"]),
    "issuer-or-token-endpoint",
  ),
  clockSkewSeconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(60)), SKEW_SECONDS),
  trustDomains: v.optional(v.record(text, TrustDomainFile), {}),
  trustedIssuers: v.optional(v.record(text, IssuerFile), {}),
  clients: v.optional(v.record(text, ClientFile), {}),
  targets: v.optional(v.array(Target), []),
  policies: v.optional(v.array(Rule), []),
  /** Every draft that is in use, by the revision that we follow. */
  drafts: v.optional(v.array(v.picklist([SPIFFE_DRAFT])), []),
});
type ConfigFile = v.InferOutput<typeof ConfigFile>;

// --- what becomes of it -----------------------------------------------------------------------------------------

export type Config = {
  settings: Settings;
  /** What a running process keeps until it is started anew. */
  fixed: {
    listen: { host: string; port: number; key: string; cert: string };
    store: { sqlite: string } | { postgres: string };
    encryptionKey: Uint8Array;
    instance: string;
  };
};

/** Reads and checks all of it; files are named relative to the configuration's own folder. */
export function loadConfig(path: string): Result<Config, readonly string[]> {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch {
    return err([`${path}: cannot be read`]);
  }
  const json = parseJson(content, CLAIMS_DEPTH_MAX);
  if (!json.ok) return err([`${path}: is not valid JSON (${json.error.kind})`]);
  const parsed = v.safeParse(ConfigFile, json.value);
  if (!parsed.success) return err(parsed.issues.map(describe));
  return build(parsed.output, dirname(resolve(path)));
}

function describe(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue) ?? "(the whole file)";
  return `${path}: ${issue.message}`;
}

function build(config: ConfigFile, folder: string): Result<Config, readonly string[]> {
  const problems: string[] = [];
  const production = config.profile === "production";
  const { issuer } = config;

  const readPath = (path: string, name: string): string => {
    try {
      return readFileSync(resolve(folder, name), "utf8");
    } catch {
      problems.push(`${path}: the file ${name} cannot be read`);
      return "";
    }
  };
  const readSecret = (path: string, from: v.InferOutput<typeof secret>): string => {
    if (typeof from === "string") {
      if (production) problems.push(`${path}: a secret is never inline in production`);
      return from;
    }
    const value = "file" in from ? readPath(path, from.file).trim() : (process.env[from.env] ?? "");
    if (value === "") problems.push(`${path}: is empty`);
    return value;
  };
  const readRemote = (
    path: string,
    { url, ca, privateNetworks }: v.InferOutput<typeof remote>,
  ): RemoteDocument => {
    if (production && privateNetworks.some(opensLoopback)) {
      problems.push(`${path}.privateNetworks: loopback is for the development profile alone`);
    }
    return { url, privateNetworks, ...(ca !== undefined && { ca: readPath(`${path}.ca`, ca.file) }) };
  };

  if (!production && !isLoopback(config.listen.host)) {
    problems.push(
      'listen.host: the development profile listens on loopback only, or "profile" is "production"',
    );
  }
  const encryptionKey = readKey(readSecret("keys.encryptionKey", config.keys.encryptionKey));
  if (encryptionKey === undefined) problems.push("keys.encryptionKey: is not 32 bytes in base64url");

  const trustDomains = new Map<string, TrustDomain>();
  for (const [name, domain] of Object.entries(config.trustDomains)) {
    const path = `trustDomains.${name}`;
    if (!isTrustDomainName(name)) problems.push(`${path}: is not the name of a trust domain`);
    const bundle =
      "file" in domain.bundle
        ? { file: resolve(folder, domain.bundle.file) }
        : readRemote(`${path}.bundle`, domain.bundle);
    trustDomains.set(name, { name, bundle, admit: domain.admit, requireClientId: domain.requireClientId });
  }
  // PROD-9.2-11: who uses a draft says which revision he expects.
  if (trustDomains.size > 0 && !config.drafts.includes(SPIFFE_DRAFT)) {
    problems.push(
      `drafts: trustDomains follow "${SPIFFE_DRAFT}", which must be acknowledged here by that name`,
    );
  }

  const trustedIssuers = new Map<string, TrustedIssuer>();
  const allSubjects = Object.values(config.trustedIssuers).map((one) => one.subjects);
  for (const [name, from] of Object.entries(config.trustedIssuers)) {
    const path = `trustedIssuers.${name}`;
    if (!v.is(issuerUrl, name)) problems.push(`${path}: is not an issuer URL`);
    if (name === issuer) problems.push(`${path}: is this server itself`);
    trustedIssuers.set(name, {
      issuer: name,
      keys: readRemote(`${path}.keys`, from.keys),
      audiences: from.audiences ?? [issuer],
      acceptAs: from.acceptAs,
      types: from.types.map((type) => type ?? undefined),
      algorithms: from.algorithms,
      subjects: readSubjects(from.subjects, allSubjects),
      scopes: from.scopes,
      ...(from.maxAgeSeconds !== undefined && { maxAgeSeconds: from.maxAgeSeconds }),
    });
  }
  problems.push(...sharedSubjects(trustedIssuers));

  const clients = new Map<string, Client>();
  for (const [clientId, from] of Object.entries(config.clients)) {
    const path = `clients.${clientId}`;
    // PROD-2.1-2: the other two forms of a client_id are proven, not configured with a secret.
    if (!/^[\x21-\x7e]+$/.test(clientId) || clientId.includes("://"))
      problems.push(`${path}: is not a plain client_id`);
    const secrets = from.secrets.map((one, index) => readSecret(`${path}.secrets.${index}`, one));
    clients.set(clientId, {
      clientId,
      method: from.method,
      secretDigests: secrets.map((one) => createHash("sha256").update(one, "utf8").digest("base64url")),
      grantTypes: from.grantTypes,
      ...(from.workload !== undefined && { workload: from.workload }),
      ...(from.defaultTarget !== undefined && { defaultTarget: from.defaultTarget }),
    });
  }

  const { targets, policies } = config;
  const digest = createHash("sha256")
    .update(canonicalize({ targets, policies } as unknown as Json))
    .digest("hex");
  const policy = compilePolicy(policies, targets, issuer, `sha256:${digest}`);
  if (!policy.ok) problems.push(...policy.error);
  else {
    for (const { clientId, defaultTarget } of clients.values()) {
      if (defaultTarget !== undefined && !policy.value.targets.has(defaultTarget)) {
        problems.push(`clients.${clientId}.defaultTarget: is not the name of a target`);
      }
    }
  }

  const store =
    "sqlite" in config.store
      ? { sqlite: resolve(folder, config.store.sqlite) }
      : { postgres: readSecret("store.postgres", config.store.postgres) };
  const { host, port, tls } = config.listen;
  const listen = {
    host,
    port,
    key: readPath("listen.tls.key", tls.key.file),
    cert: readPath("listen.tls.cert", tls.cert.file),
  };

  if (problems.length > 0 || !policy.ok || encryptionKey === undefined) return err(problems);
  const tokenEndpoint = `${issuer}/token`;
  return ok({
    settings: {
      issuer,
      tokenEndpoint,
      assertionAudiences: config.assertionAudience === "issuer" ? [issuer] : [issuer, tokenEndpoint],
      skewSeconds: config.clockSkewSeconds,
      clients,
      trustDomains,
      trustedIssuers,
      policy: policy.value,
    },
    fixed: { listen, store, encryptionKey, instance: config.audit.instance },
  });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function readKey(encoded: string): Uint8Array | undefined {
  const bytes = Buffer.from(encoded, "base64url");
  return bytes.length === 32 && bytes.toString("base64url") === encoded ? bytes : undefined;
}

type SubjectsFile = v.InferOutput<typeof IssuerFile>["subjects"];

function readSubjects(from: SubjectsFile, all: readonly SubjectsFile[]): SubjectMapping {
  if (from === "keep") {
    const reservedPrefixes = all.flatMap((one) =>
      typeof one === "object" && "prefix" in one ? [one.prefix] : [],
    );
    const tables = all.flatMap((one) => (typeof one === "object" && "table" in one ? [one.table] : []));
    return { kind: "keep", reservedPrefixes, reserved: new Set(tables.flatMap(Object.values<string>)) };
  }
  if ("prefix" in from) return { kind: "prefix", prefix: from.prefix };
  return { kind: "table", table: new Map(Object.entries(from.table)) };
}

/** RFC7519-4.1.2-v1: no `sub` of ours may come from two issuers. */
function sharedSubjects(issuers: ReadonlyMap<string, TrustedIssuer>): readonly string[] {
  const problems: string[] = [];
  const all = [...issuers.values()];
  const prefixes = all.flatMap(({ subjects }) => (subjects.kind === "prefix" ? [subjects.prefix] : []));
  const listed = all.flatMap(({ subjects }) =>
    subjects.kind === "table" ? [...subjects.table.values()] : [],
  );
  const keeping = all.filter(({ subjects }) => subjects.kind === "keep").length;
  if (keeping > 1) problems.push('trustedIssuers: "subjects": "keep" is for one issuer at most');
  if (prefixes.some((one, i) => prefixes.some((other, j) => i !== j && other.startsWith(one)))) {
    problems.push("trustedIssuers: one prefix begins with another");
  }
  if (new Set(listed).size < listed.length) problems.push("trustedIssuers: two tables lead to one subject");
  if (listed.some((sub) => prefixes.some((prefix) => sub.startsWith(prefix)))) {
    problems.push("trustedIssuers: a table leads to a subject under another issuer's prefix");
  }
  if (listed.some((sub) => sub.includes("://")))
    problems.push("trustedIssuers: a table leads to a URL or SPIFFE ID");
  return problems;
}
