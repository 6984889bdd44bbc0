/**
 * Loads the configuration: one JSON file, described by one schema. The environment is read here and nowhere else. An
 * invalid file results in a list of problems, each as a text that begins with its path.
 */
import { dirname, resolve } from "node:path";
import * as v from "valibot";
import { DRAIN_SECONDS } from "../limits/process.ts";
import { describeIssue, isUnknownName } from "../policy/messages.ts";
import { nearest } from "../policy/nearest.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { membersOf } from "../setting.ts";
import { compileAgents } from "../settings/agents.ts";
import type { DocumentSettings } from "../settings/client-metadata.ts";
import { PROXY_FORMS } from "../settings/proxy-forms.ts";
import { General } from "../settings/sections.ts";
import type { Client, KeyServicePlace, Settings, StorePlace } from "../settings/settings.ts";
import { DRAFT as DEFERRED_DRAFT } from "../spec/deferred-token-response.ts";
import { DRAFT as ID_JAG_DRAFT } from "../spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../spec/identity-chaining.ts";
import { DRAFT as EXPIRATION_DRAFT } from "../spec/refresh-token-expiration.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { DRAFT as SPIFFE_DRAFT } from "../spec/spiffe/client-auth.ts";
import { DRAFT as TRANSACTION_DRAFT } from "../spec/transaction-tokens.ts";
import { DRAFT as WORKLOAD_DRAFT } from "../spec/workload-grant.ts";
import { readAgents } from "./agents.ts";
import { type AuditSettings, readAudit } from "./audit.ts";
import { readTrustDomains } from "./bundles.ts";
import { readClients } from "./clients.ts";
import { readConsents } from "./consents.ts";
import { readIssuers } from "./issuers.ts";
import { readJsonFile } from "./json-file.ts";
import { readEncryptionKey, readKeySchedule, readKeyService, readOtherEncryptionKey } from "./keys.ts";
import { sharedPorts, whyNotShared } from "./listeners.ts";
import { makeLogoReader } from "./logos.ts";
import { readPolicy } from "./policy.ts";
import { makeBlindReader, makeReader, type Reader } from "./reader.ts";
import { readDocuments, readOrigins, readRegistrationSettings } from "./registration.ts";
import { ConfigFile } from "./schema.ts";
import { readRedirects, readSignIn } from "./sign-in.ts";
import { readStreams } from "./signals.ts";
import { readStore } from "./store.ts";
import { isLoopbackHost } from "./values.ts";
import type { FileDigests } from "./watched.ts";

/** A test sets the clock of a server through the file of this name; in the development profile only. */
const CLOCK_FILE = "MANDATE_CLOCK_FILE";

/** What the three have in common: the texts of their two files, and whether they share their ports. */
export type Listener = { host: string; port: number; key: string; cert: string; reusePort: boolean };
type Opened<F> = Listener & Omit<F, "tls" | keyof Listener>;

export type Config = {
  settings: Settings;
  /** The settings that change only with a restart, each at its path in the file. */
  fixed: Pick<ConfigFile, "profile" | "operations" | "limits"> & {
    /** `drainSeconds`: how long the server serves on after SIGTERM. */
    listen: Opened<ConfigFile["listen"]> & { drainSeconds: number };
    /** The listener for client certificates; absent: `listen` asks for them. */
    mtls?: Opened<NonNullable<ConfigFile["mtls"]>>;
    /** Whether users sign in; then `listen` asks for no certificates, which browsers would ask their users for. */
    signsIn: boolean;
    /** The listener for the TLS-terminating proxy alone, with the authorities of its certificate. */
    proxy?: Omit<Opened<NonNullable<ConfigFile["proxy"]>>, "ca" | "field" | "intermediates"> & {
      field: string;
      ca: readonly Uint8Array[];
      intermediates: readonly Uint8Array[];
    };
    store: ReturnType<typeof readStore>;
    keys: { encryptionKey: Uint8Array; otherEncryptionKey?: Uint8Array; service?: KeyServicePlace };
    audit: AuditSettings;
    /** The file with the offsets of the clocks, for a server under test. */
    clockFile?: string;
  };
  /** Texts about secrets and the policy that the operator should read; they do not stop the start. Made at each look. */
  readonly warnings: readonly string[];
  /** The files that the configuration names, as they were read. */
  files: FileDigests;
  /** The same configuration with these files as they are now; what was edited in the configuration since is not read. */
  reread(): Result<Config, readonly string[]>;
};

/** Reads the file, then checks its shape, then its content. File names in it are relative to its own folder. */
export function loadConfig(path: string): Result<Config, readonly string[]> {
  const config = readConfigFile(path);
  return config.ok ? build(config.value, dirname(resolve(path))) : config;
}

/** The settings without the files and secrets that the configuration names, to examine a policy on another host. */
export function loadSettings(path: string): Result<Pick<Config, "settings" | "warnings">, readonly string[]> {
  const config = readConfigFile(path);
  if (!config.ok) return config;
  const reader = makeBlindReader();
  const read = readSettings(config.value, reader);
  return read === undefined || reader.problems.length > 0 ? err(reader.problems) : ok(read);
}

const { profile, store, agents } = ConfigFile.entries;
/** What a look at the audit trail needs: where it is kept, and how people are told of agents. */
const TrailFile = v.object({ profile, store, agents });

/** AUDIT-D-18: the rest is neither read nor judged, so that its size and its faults keep no one from the trail. */
export function loadTrail(
  path: string,
): Result<Pick<Settings, "agents"> & { store: StorePlace }, readonly string[]> {
  const json = readObject(path);
  if (!json.ok) return json;
  const parsed = v.safeParse(TrailFile, json.value);
  if (!parsed.success) return err(parsed.issues.map((issue) => describeIssue(issue)));
  const reader = makeReader(dirname(resolve(path)), parsed.output.profile === "production");
  const place = readStore(parsed.output, dirname(resolve(path)), reader);
  const named = Object.entries(parsed.output.agents).map(
    ([id, { logo: _, ...agent }]) => [id, agent] as const,
  );
  const read = { store: place, agents: compileAgents(Object.fromEntries(named)) };
  return reader.problems.length > 0 ? err(reader.problems) : ok(read);
}

/** `written`: the sections that are in the file, and not there by default alone. */
type Read = { file: ConfigFile; written: ReadonlySet<string> };

function readConfigFile(path: string): Result<Read, readonly string[]> {
  const json = readObject(path);
  if (!json.ok) return json;
  const written = new Set(Object.keys(json.value));
  const file = readShape(json.value);
  return file.ok ? ok({ file: file.value, written }) : file;
}

/** Apart from readShape, so that the text of the file is not held while its shape is checked. */
function readObject(path: string): Result<JsonObject, readonly string[]> {
  const json = readJsonFile(path);
  if (!json.ok) return err([json.error]);
  return isJsonObject(json.value) ? ok(json.value) : err([`${path}: is not a JSON object`]);
}

/** The sections whose members have names of the operator's choice. */
const BY_NAME = ["trustDomains", "trustedIssuers", "clients", "agents", "clientOrigins"];

/** The schema library leaves a member of these names out of its output, and says nothing. */
const UNUSABLE: readonly string[] = ["__proto__", "prototype", "constructor"];

function unusableIn(json: Json): readonly string[] {
  if (typeof json !== "object" || json === null) return [];
  const found: string[] = [];
  for (const [name, value] of Object.entries(json)) {
    if (UNUSABLE.includes(name)) found.push(name);
    // The path of most members is never asked for.
    else for (const path of unusableIn(value)) found.push(`${name}.${path}`);
  }
  return found;
}

/** The schema reports only the first unknown name of an object, so that one is removed and the rest is read again. */
function readShape(json: Json): Result<ConfigFile, readonly string[]> {
  const unusable = unusableIn(json);
  if (unusable.length > 0) return err(unusable.map((path) => `${path}: is a name that cannot be used`));
  // The schema library takes an array for a record without entries.
  const lists = BY_NAME.filter((name) => Array.isArray(Object(json)[name]));
  const problems = new Set(lists.map((name) => `${name}: is not an object`));
  const misspelt: string[] = [];
  for (;;) {
    const parsed = v.safeParse(ConfigFile, json);
    if (parsed.success) return problems.size === 0 ? ok(parsed.output) : err([...problems]);
    for (const issue of parsed.issues) {
      const meant = meantBy(issue);
      if (meant !== undefined) misspelt.push(meant);
      problems.add(`${describeIssue(issue)}${meant === undefined ? "" : `: ${meant} is perhaps meant`}`);
    }
    const unknown = parsed.issues.filter(isUnknownName).flatMap(({ path }) => path?.at(-1) ?? []);
    // The misspelt member is told, and the right one is not missing besides.
    for (const name of misspelt) problems.delete(`${name}: is missing`);
    if (unknown.length === 0) return err([...problems]);
    for (const { input, key } of unknown) Reflect.deleteProperty(Object(input), String(key));
  }
}

function build(read: Read, folder: string): Result<Config, readonly string[]> {
  const config = read.file;
  const reader = makeReader(folder, config.profile === "production");
  const { problems, problem, readListener, readAnchors } = reader;

  const { listen: main, operations, mtls: mtlsFile, proxy: proxyFile } = config;
  checkListeners(config, reader);
  const encryptionKey = readEncryptionKey(config, reader);
  const service = readKeyService(config, reader);
  const otherEncryptionKey = readOtherEncryptionKey(config, reader, encryptionKey);
  const now = readSettings(read, reader);

  const store = readStore(config, folder, reader);
  const { reusePort, drainSeconds = DRAIN_SECONDS[config.profile] } = main;
  const listen = { ...readListener("listen", main), reusePort, drainSeconds };
  const mtls = mtlsFile && { ...readListener("mtls", mtlsFile), reusePort };
  const proxy = proxyFile && {
    ...readListener("proxy", proxyFile),
    reusePort,
    ca: readAnchors("proxy.ca", proxyFile.ca),
    intermediates: proxyFile.intermediates ? readAnchors("proxy.intermediates", proxyFile.intermediates) : [],
    field: proxyFile.field ?? PROXY_FORMS[proxyFile.form].field,
    name: proxyFile.name.toLowerCase(),
  };
  const audit = readAudit(config, folder, reader);
  const clockFile = process.env[CLOCK_FILE];
  if (clockFile !== undefined && config.profile === "production") {
    problem("profile", `production does not allow ${CLOCK_FILE}: remove it from the environment`);
  }

  if (problems.length > 0 || !now || !encryptionKey) return err(problems);
  return ok({
    settings: now.settings,
    files: reader.files,
    reread: () => build(read, folder),
    get warnings() {
      return [...new Set(now.warnings)];
    },
    fixed: defined<Config["fixed"]>({
      profile: config.profile,
      listen,
      mtls,
      signsIn: config.signIn !== undefined,
      proxy,
      operations,
      store,
      keys: defined<Config["fixed"]["keys"]>({ encryptionKey, otherEncryptionKey, service }),
      audit,
      limits: config.limits,
      clockFile,
    }),
  });
}

function checkListeners(config: ConfigFile, { problem }: Reader): void {
  const { listen, mtls, proxy, operations } = config;
  const listeners = Object.entries({ listen, mtls, proxy, operations });
  for (const [name, listener] of listeners) {
    if (config.profile === "development" && listener !== undefined && !isLoopbackHost(listener.host)) {
      problem(`${name}.host`, "must be a loopback address in the development profile, for example 127.0.0.1");
    }
  }
  for (const [name, other] of sharedPorts(listeners)) {
    problem(`${name}.port`, `is also that of ${other}: give each listener a port of its own`);
  }
  const unshared = listen.reusePort ? whyNotShared(config, process.platform) : undefined;
  if (unshared !== undefined) problem("listen.reusePort", unshared);
}

/** The settings that SIGHUP reloads; undefined without a valid policy. The reader collects every problem. */
function readSettings(
  { file: config, written }: Read,
  reader: Reader,
): Pick<Config, "settings" | "warnings"> | undefined {
  const { problems, problem } = reader;
  const { issuer } = config;
  const trustDomains = readTrustDomains(config, reader);
  checkDrafts(config, problem);
  const trustedIssuers = readIssuers(config, reader);
  const consentIssuers = readConsents(config, reader);
  const registration = readRegistrationSettings(config, reader);
  const clientDocuments = readDocuments(config, reader);
  const signIn = readSignIn(config, reader);
  const clientOrigins = readOrigins(config, reader);
  const takesCertificates = signIn === undefined || config.mtls !== undefined || config.proxy !== undefined;
  const documents = { clientDocuments, clientOrigins, trustDomains, signIn, takesCertificates };
  const clients = readClients(config, defined<DocumentSettings>(documents), reader);
  if (!written.has("assertionAudience")) reader.advice("assertionAudience", TOKEN_ENDPOINTS);
  if (written.has("deferral") && !mayDefer(config)) reader.warnings.push(`deferral: ${NOT_DEFERRED}`);
  const policy = readPolicy(config);
  if (!policy.ok) {
    problems.push(...policy.error);
    return undefined;
  }

  const logos = makeLogoReader(issuer, reader);
  return {
    settings: defined<Settings>({
      issuer,
      ...v.parse(General, config),
      clients,
      agents: readAgents(config, logos, reader),
      vouchedClients: byVoucher(clients),
      mtlsOrigin: config.mtls?.origin,
      takesCertificates,
      trustDomains,
      trustedIssuers,
      platforms: platformsOf(trustedIssuers),
      consentIssuers,
      registration,
      clientDocuments,
      clientOrigins,
      dpop: config.dpop,
      pageOrigins: new Set(config.cors.origins),
      production: config.profile === "production",
      signIn,
      deferral: mayDefer(config) ? config.deferral : undefined,
      // CHG-D-8
      tellsRefreshEnds: config.drafts.includes(EXPIRATION_DRAFT) || undefined,
      redirects: readRedirects(config, reader),
      pages: readPages(config, logos),
      keys: readKeySchedule(config, reader),
      policy: policy.value.policy,
      streams: readStreams(config.signals, policy.value.policy, config.clockSkewSeconds, reader),
    }),
    get warnings() {
      return [...reader.warnings, ...policy.value.found.warnings];
    },
  };
}

function checkDrafts(config: ConfigFile, problem: Reader["problem"]): void {
  // PROD-9.2-11: the configuration lists each draft in use with the revision that it expects.
  if (Object.keys(config.trustDomains).length > 0 && !config.drafts.includes(SPIFFE_DRAFT)) {
    problem("drafts", `must list "${SPIFFE_DRAFT}", the draft that trustDomains follow`);
  }
  for (const draft of draftsAcrossBorders(config)) {
    if (config.drafts.includes(draft)) continue;
    problem("drafts", `must list "${draft}", the draft that grants of other issuers follow`);
  }
}

const readPages = ({ pages, issuer }: ConfigFile, { read, logos }: ReturnType<typeof makeLogoReader>) => ({
  ...pages,
  operator: pages.operator ?? new URL(issuer).host,
  logo: read("pages.logo", pages.logo),
  logos,
});

/** DTR-5.1-1: off without the draft, and without users who could decide. */
const mayDefer = ({ signIn, drafts }: ConfigFile): boolean =>
  signIn !== undefined && drafts.includes(DEFERRED_DRAFT);

const NOT_DEFERRED = `has no effect, as no client may wait: list "${DEFERRED_DRAFT}" in drafts, and set signIn, or remove it`;

function platformsOf(trusted: Settings["trustedIssuers"]): Settings["platforms"] {
  const all = [...trusted.values()].flatMap(({ workloads }) => workloads);
  return new Map(all.map((one) => [one.name, one]));
}

/** B7523-D-2: both are accepted, because PROD-2.3-4 asks for what RFC 10070 forbids. */
const TOKEN_ENDPOINTS =
  'accepts a token endpoint as well as the issuer as audience of an assertion, against RFC 10070: another server that names our token endpoint as its own could use here what a client sends it. Set "issuer" when every client names the issuer, as `mandate agents list` tells by `audience`, or "issuer-or-token-endpoint" to keep it';

/** The drafts in use for grants: a partner may get both kinds, an issuer sends the kinds that its `grants` name. */
function draftsAcrossBorders({ targets, trustedIssuers }: ConfigFile): ConfigFile["drafts"] {
  const partners = targets.some((target) => "partner" in target);
  const profiles = Object.values(trustedIssuers).flatMap(({ grants }) => grants?.profiles ?? []);
  const registrations = Object.values(trustedIssuers).flatMap(({ workloads }) => Object.values(workloads));
  const drafts = [
    { draft: CHAINING_DRAFT, isUsed: partners || profiles.includes("jwt") },
    { draft: ID_JAG_DRAFT, isUsed: partners || profiles.includes("id-jag") },
    { draft: TRANSACTION_DRAFT, isUsed: targets.some((target) => "transaction" in target) },
    { draft: WORKLOAD_DRAFT, isUsed: registrations.some(({ uses }) => uses?.includes("grant") ?? true) },
  ] as const;
  return drafts.flatMap(({ draft, isUsed }) => (isUsed ? [draft] : []));
}

function byVoucher(clients: ReadonlyMap<string, Client>): ReadonlyMap<string, readonly Client[]> {
  const pairs = [...clients.values()].flatMap((client) => {
    const issuers = "vouchers" in client.auth ? client.auth.vouchers.map(({ issuer }) => issuer) : [];
    return [...new Set(issuers)].map((issuer) => ({ issuer, client }));
  });
  const grouped = Map.groupBy(pairs, ({ issuer }) => issuer);
  return new Map([...grouped].map(([issuer, found]) => [issuer, found.map(({ client }) => client)]));
}

/** The path of the member that an unknown one is like, if there is one. */
function meantBy(issue: v.BaseIssue<unknown>): string | undefined {
  if (!isUnknownName(issue)) return undefined;
  const names = (issue.path ?? []).map(({ key }) => String(key));
  const [name = ""] = names.splice(-1);
  const beside = membersOf(ConfigFile).flatMap(({ path }) => {
    const parts = path.split(".");
    const [last = ""] = parts.splice(-1);
    const isBeside =
      parts.length === names.length && parts.every((one, at) => one === "*" || one === names[at]);
    return isBeside ? [last] : [];
  });
  const found = nearest(name, beside);
  return found === undefined ? undefined : [...names, found].join(".");
}
