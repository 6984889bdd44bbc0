/**
 * The `trustedIssuers` section: the tokens that are accepted, and how the subjects of each issuer are mapped to ours.
 */
import { createHash } from "node:crypto";
import * as v from "valibot";
import { KEY_SET_BYTES_MAX } from "../limits/fetching.ts";
import { foreignIssuer } from "../policy/targets.ts";
import { defined } from "../result.ts";
import type { IssuerKeys, SignalSource, SubjectMapping, TrustedIssuer } from "../settings/settings.ts";
import { ID_JAG_TYP } from "../spec/id-jag.ts";
import { GRANT_TYP } from "../spec/identity-chaining.ts";
import { mediaType } from "../spec/rfc7515.ts";
import { parseJwkSet } from "../spec/rfc7517.ts";
import { TRANSACTION_TYP } from "../spec/transaction-tokens.ts";
import { describeContent } from "./file-contents.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";
import type { IssuerFile } from "./trust-schema.ts";
import { readWorkloads } from "./workloads.ts";

const GRANT_JWT_TYPES = [GRANT_TYP, ID_JAG_TYP].map(mediaType);
const TRANSACTION_TYPE = mediaType(TRANSACTION_TYP);

/** The enabled issuers by their identifier. */
export function readIssuers(
  { issuer, trustDomains, trustedIssuers, signIn }: ConfigFile,
  reader: Reader,
): ReadonlyMap<string, TrustedIssuer> {
  const { problem, problems } = reader;
  const issuers = new Map<string, TrustedIssuer>();
  const allSubjects = Object.values(trustedIssuers).flatMap((one) => one.subjects ?? []);
  const registered = new Set<string>();
  const receivers = new Set<string>();
  for (const [name, from] of Object.entries(trustedIssuers)) {
    const path = `trustedIssuers.${name}`;
    if (!v.is(foreignIssuer, name)) {
      problem(path, "is not an https URL in canonical form without a query");
    }
    if (name === issuer) problem(path, "is this server's own issuer identifier");
    const signsIn = Object.values(signIn?.providers ?? {}).some((one) => one.issuer === name);
    const workloads = readWorkloads(name, from.workloads, trustDomains, reader);
    for (const one of workloads) {
      // WAG-4-2: a name belongs to one registration, or two platforms could give the same agent.
      if (registered.has(one.name)) problem(`${path}.workloads.${one.name}`, "is a name that is given twice");
      registered.add(one.name);
    }
    const hasWorkloads = workloads.length > 0;
    // PLAT-D-15: an issuer of workloads has users only where the operator says so.
    const acceptAs: TrustedIssuer["acceptAs"] = from.acceptAs ?? (hasWorkloads ? [] : ["jwt"]);
    const hasUsers = acceptAs.length > 0 || from.grants !== undefined || signsIn;
    checkIssuer(path, from, hasUsers, hasWorkloads, problem);
    if (from.signals !== undefined && receivers.has(from.signals.name)) {
      problem(`${path}.signals.name`, "is that of another issuer");
    }
    if (from.signals !== undefined) receivers.add(from.signals.name);
    const { disabled: _, ...asWritten } = from;
    const trusted = defined<TrustedIssuer>({
      ...asWritten,
      issuer: name,
      keys: readKeys(`${path}.keys`, name, from.keys, reader),
      audiences: from.audiences ?? [issuer],
      acceptAs,
      types: from.types.map((type) => type ?? undefined),
      subjects: readSubjects(from.subjects ?? NO_USERS, allSubjects),
      workloads,
      signals: from.signals && readSignals(`${path}.signals`, issuer, name, from.signals, reader),
      disabledSubjects: new Set(from.disabledSubjects),
    });
    issuers.set(name, trusted);
  }
  problems.push(...subjectProblems(issuers));
  // Disabled issuers are checked like the others, so that they can be enabled at any time.
  const inForce = [...issuers].filter(([name]) => !trustedIssuers[name]?.disabled);
  return new Map(inForce);
}

function checkIssuer(
  path: string,
  from: v.InferOutput<typeof IssuerFile>,
  hasUsers: boolean,
  hasWorkloads: boolean,
  problem: Reader["problem"],
): void {
  if (!hasUsers && !from.vouches && !from.statements && !from.signals && !hasWorkloads) {
    problem(
      path,
      'is trusted for nothing: set at least one of "acceptAs", "grants", "signals", "statements", "vouches" and "workloads", or name it in signIn',
    );
  }
  if (from.subjects === undefined && (hasUsers || !hasWorkloads)) {
    problem(`${path}.subjects`, "is missing");
  }
  // RFC8725-3.12-v1: a grant is single use and for one client; as a subject token it would escape both rules.
  if (from.types.some((type) => type !== null && GRANT_JWT_TYPES.includes(mediaType(type)))) {
    problem(`${path}.types`, 'names the type of a grant, which is no subject token: use "grants" for it');
  }
  // TXN-14-1: a token that is used inside of another domain is no evidence here.
  if (from.types.some((type) => type !== null && mediaType(type) === TRANSACTION_TYPE)) {
    problem(`${path}.types`, "names the type of a transaction token, which stays in its own trust domain");
  }
  // A grant names its subject by `sub`, so it would speak of another user than a token of the same issuer.
  if (from.subjectClaim !== "sub" && from.grants !== undefined) {
    problem(`${path}.subjectClaim`, 'is not for an issuer with "grants", which name a subject by sub alone');
  }
}

function readSignals(
  path: string,
  us: string,
  issuer: string,
  {
    name,
    audiences,
    authorization: from,
    issuer: iss = issuer,
    criticalSubjectMembers,
    email,
    unverifiedEmail,
  }: NonNullable<v.InferOutput<typeof IssuerFile>["signals"]>,
  { readSecret, problem }: Reader,
): SignalSource {
  if (unverifiedEmail && email === undefined)
    problem(`${path}.unverifiedEmail`, 'has no effect without "email", which names the claim');
  const secret = from && readSecret(`${path}.authorization`, from);
  return defined<SignalSource>({
    name,
    iss,
    criticalSubjectMembers,
    email,
    unverifiedEmail,
    audiences: audiences ?? [us, `${us}/signals/${name}`],
    authorization: secret && createHash("sha256").update(secret).digest("base64url"),
  });
}

type KeysFile = v.InferOutput<typeof IssuerFile>["keys"];

/** A file, a fixed URL, or discovery through the issuer's metadata (RFC8414-3-2). */
function readKeys(path: string, issuer: string, from: KeysFile, reader: Reader): IssuerKeys {
  if ("file" in from) return readKeysFile(`${path}.file`, from.file, reader);
  const { authorization: token, ...rest } = from;
  const authorization = token && { file: reader.locate(token.file) };
  // It is only looked into: a cluster writes it anew every hour, which is no change of the configuration.
  const seen = token && reader.peek(token.file);
  if (seen?.ok === false) reader.problem(`${path}.authorization.file`, seen.error);
  if ("url" in rest) return defined<IssuerKeys>({ ...reader.readRemote(path, rest), authorization });
  const { url: _, ...reach } = reader.readRemote(path, { ...rest, url: issuer });
  return defined<IssuerKeys>({ ...reach, discover: issuer, authorization });
}

/** The file is read again while the server runs; here only an operator's mistake is found. */
function readKeysFile(path: string, name: string, { locate, problem, readText }: Reader): IssuerKeys {
  const text = readText(path, name);
  if (text !== undefined && Buffer.byteLength(text) > KEY_SET_BYTES_MAX) {
    problem(path, `${name} is larger than ${KEY_SET_BYTES_MAX} bytes`);
  } else if (text !== undefined && !parseJwkSet(text).ok) {
    const wanted = "a JWK Set of public keys";
    problem(path, `${name} is not ${wanted}${describeContent(text, wanted)}`);
  }
  return { file: locate(name) };
}

type SubjectsFile = NonNullable<v.InferOutput<typeof IssuerFile>["subjects"]>;

/** An issuer of workloads alone maps no subject to a user. */
const NO_USERS: SubjectsFile = { table: {} };

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

/**
 * RFC7519-4.1.2-v1: two issuers must not map subjects to the same `sub` of ours. RFC9068-5-1: nor may a `sub` look like
 * a
 * URL or a SPIFFE ID, which name clients.
 */
function subjectProblems(issuers: ReadonlyMap<string, TrustedIssuer>): readonly string[] {
  const problems: string[] = [];
  let keeping: string | undefined;
  const prefixes: { name: string; prefix: string }[] = [];
  for (const [name, { subjects }] of issuers) {
    const path = `trustedIssuers.${name}.subjects`;
    if (subjects.kind === "keep") {
      if (keeping !== undefined) {
        problems.push(`${path}: "keep" is allowed for one issuer only, and ${keeping} has it already`);
      }
      keeping ??= name;
    }
    if (subjects.kind === "prefix") {
      const { prefix } = subjects;
      for (const other of prefixes) {
        if (prefix.startsWith(other.prefix) || other.prefix.startsWith(prefix)) {
          problems.push(`${path}.prefix: overlaps the prefix of ${other.name}`);
        }
      }
      prefixes.push({ name, prefix });
      if (/^(https?|spiffe)(:|$)|:\/\//i.test(prefix)) {
        problems.push(`${path}.prefix: would make subjects look like URLs or SPIFFE IDs`);
      }
    }
  }
  const mapped = new Set<string>();
  for (const [name, { subjects }] of issuers) {
    if (subjects.kind !== "table") continue;
    const path = `trustedIssuers.${name}.subjects.table`;
    for (const sub of subjects.table.values()) {
      const shown = JSON.stringify(sub);
      if (mapped.has(sub)) problems.push(`${path}: maps a second subject to ${shown}`);
      mapped.add(sub);
      const owner = prefixes.find(({ prefix }) => sub.startsWith(prefix));
      if (owner !== undefined) {
        problems.push(`${path}: maps a subject to ${shown}, which has the prefix of ${owner.name}`);
      }
      if (sub.includes("://")) {
        problems.push(`${path}: maps a subject to ${shown}, which is a URL or SPIFFE ID`);
      }
    }
  }
  return problems;
}
