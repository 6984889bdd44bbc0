/** The registrations of platforms: which tokens of a trusted issuer are those of workloads, and how they are accepted. */
import { defined } from "../result.ts";
import type { TrustedIssuer } from "../settings/settings.ts";
import { mediaType } from "../spec/rfc7515.ts";
import { SECURITY_EVENT } from "../spec/rfc8417.ts";
import { JWT_TYPES } from "../spec/rfc8725.ts";
import { parseSpiffeId } from "../spec/spiffe/id.ts";
import { isPointer, isRegistrationName, type PlatformRegistration } from "../spec/workload-grant.ts";
import type { Reader } from "./reader.ts";
import type { WorkloadsFile } from "./trust-schema.ts";

const GITHUB = "https://token.actions.githubusercontent.com";

/**
 * PLAT-D-2: these sign tokens for anyone, so that only an exact subject, or a claim with an id that the issuer assigns,
 * tells whose they are. What else a token says, such as the environment, every tenant can choose.
 */
const SHARED_ISSUERS: ReadonlyMap<string, readonly string[]> = new Map([
  [GITHUB, ["/repository_owner_id", "/repository_id", "/enterprise_id"]],
  ["https://gitlab.com", ["/project_id", "/namespace_id"]],
  ["https://accounts.google.com", ["/sub"]],
]);

/** FEDC-D-11: without this id in their name, or pinned, workloads of several owners' projects would be one agent. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  [GITHUB, "/repository_id"],
  ["https://gitlab.com", "/project_id"],
  ["https://accounts.google.com", "/sub"],
]);

/** FEDC-D-13: what comes after the account can be the person behind a session. */
const AWS_ACCOUNT = /\.tokens\.sts\.global\.api\.aws$/;
const AWS_PRINCIPAL = "/https:~1~1sts.amazonaws.com~1/principal_id";

/** Issuers that no token has: Entra signs with the name of a tenant. */
const NO_ISSUER =
  /^https:\/\/(?:login\.microsoftonline\.com|sts\.windows\.net)\/(?:common|organizations|consumers)(?:\/|$)/;

/** PLAT-D-3: a token for these is meant for another service, which could send it here. */
const AUDIENCES_OF_OTHERS =
  /^(?:sts\.amazonaws\.com|api:\/\/AzureADTokenExchange|(?:https:)?\/\/iam\.googleapis\.com\/.*|(?:https:\/\/)?kubernetes(?:\.default(?:\.svc(?:\.cluster\.local)?)?)?)$/;

const TYPES_OF_OTHERS = [
  ...JWT_TYPES.accessToken,
  ...JWT_TYPES.idJag,
  ...JWT_TYPES.dpopProof,
  SECURITY_EVENT,
  "logout+jwt",
].map(mediaType);

/** A repository with the id of its owner, which no other owner gets. */
const OWNER_BY_ID = /^repo:[^/@]+@\d+\//;

export function readWorkloads(
  issuer: string,
  workloads: Readonly<Record<string, WorkloadsFile>>,
  trustDomains: object,
  reader: Reader,
): TrustedIssuer["workloads"] {
  return Object.entries(workloads).map(([name, from]) =>
    readRegistration(issuer, name, from, trustDomains, reader),
  );
}

function readRegistration(
  issuer: string,
  name: string,
  file: WorkloadsFile,
  trustDomains: object,
  { problem, warnings }: Reader,
): PlatformRegistration {
  const path = `trustedIssuers.${issuer}.workloads.${name}`;
  if (!isRegistrationName(name))
    problem(path, "is not the name of a registration: 1 to 64 of a-z, 0-9, . ~ and -");
  if (NO_ISSUER.test(issuer))
    problem(path, "is for an issuer of many tenants, whose tokens name their own tenant");
  const at = { path, issuer, problem, warnings };
  checkTenancy(at, file);
  for (const one of file.subjects) checkSubject(at, file, one, trustDomains);
  checkClaims(at, file);
  checkUses(at, file);
  const { tenancy: _, name: namedBy, ...from } = file;
  return defined<PlatformRegistration>({
    ...from,
    name,
    namedBy,
    issuer,
    uses: from.uses ?? (from.clients === undefined ? ["grant", "client", "actor"] : ["grant"]),
    claims: new Map(Object.entries(from.claims)),
    types: from.types.map((type) => type ?? undefined),
  });
}

type At = Pick<Reader, "problem" | "warnings"> & { path: string; issuer: string };

/** Whether a claim is pinned that tells the tenants of this issuer apart. */
function isPinned(issuer: string, { claims }: WorkloadsFile): boolean {
  const ids = SHARED_ISSUERS.get(issuer);
  return Object.keys(claims).some((pointer) => ids?.includes(pointer) ?? true);
}

function checkTenancy({ path, issuer, problem }: At, file: WorkloadsFile): void {
  const { tenancy, subjects } = file;
  const ids = SHARED_ISSUERS.get(issuer);
  const isOfOne = subjects.every((one) => !one.endsWith("*") || (issuer === GITHUB && OWNER_BY_ID.test(one)));
  if (tenancy === "dedicated" && ids !== undefined) {
    problem(`${path}.tenancy`, 'is "shared" for this issuer, which signs tokens for anyone');
  }
  // WIF-N-1: what a tenant can choose, and a prefix of it, tells no tenant from another.
  if (tenancy === "shared" && !isOfOne && !isPinned(issuer, file)) {
    const among = ids === undefined ? "" : ` of ${ids.join(", ")}`;
    problem(
      `${path}.claims`,
      `names no claim${among}: an issuer that is shared needs one, or exact subjects alone`,
    );
  }
}

function checkSubject(
  { path, issuer, problem, warnings }: At,
  file: WorkloadsFile,
  one: string,
  trustDomains: object,
): void {
  if (one === "*" ? file.tenancy === "shared" : /[^:/]\*$/.test(one)) {
    problem(
      `${path}.subjects`,
      `${one} is neither exact nor a prefix that ends in a star after a slash or a colon${one === "*" ? "; all subjects need a dedicated issuer" : ""}`,
    );
  }
  const id = parseSpiffeId(one.replace(/\/\*$/, ""));
  // SPCA-D-1, PLAT-D-7: a workload of that domain proves itself by its SVID.
  if (id.ok && Object.hasOwn(trustDomains, id.value.trustDomain)) {
    problem(
      `${path}.subjects`,
      `${one} is of ${id.value.trustDomain}, which trustDomains has: its workloads would have two names`,
    );
  }
  if (issuer === GITHUB && !isPinned(issuer, file) && one.startsWith("repo:") && !OWNER_BY_ID.test(one)) {
    warnings.push(
      `${path}.subjects: ${one} names a repository by a name that another owner can get: name it with its ids, or pin /repository_id`,
    );
  }
  // FEDC-D-13
  if (issuer === GITHUB && /^repo:[^@]*[^*@]$/.test(one)) {
    warnings.push(
      `${path}.subjects: ${one} is the sub of a repository from before 15 July 2026: one that is new, renamed or moved since has repo:OWNER@ID/NAME@ID:…, so list both`,
    );
  }
}

function checkClaims({ path, issuer, problem }: At, { claims, name: namedBy }: WorkloadsFile): void {
  const pointers = { claims: Object.keys(claims), name: namedBy ?? [] };
  for (const [setting, named] of Object.entries(pointers)) {
    for (const pointer of named) {
      if (!isPointer(pointer)) {
        problem(`${path}.${setting}`, `${pointer} is not a JSON pointer, such as /kubernetes.io/namespace`);
      }
    }
  }
  const unit = NAMED_BY.get(issuer);
  if (namedBy !== undefined && unit !== undefined) {
    if (!namedBy.includes(unit) && claims[unit]?.length !== 1) {
      problem(
        `${path}.name`,
        `has no ${unit}, and "claims" does not pin it to one: two of them would be one agent`,
      );
    }
  }
  if (new Set(namedBy).size !== pointers.name.length) problem(`${path}.name`, "names a claim twice");
}

function checkUses(
  { path, issuer, problem }: At,
  { claims, subjects, audiences, types, clients, uses }: WorkloadsFile,
): void {
  if (AWS_ACCOUNT.test(issuer) && !(AWS_PRINCIPAL in claims) && subjects.some((one) => one.endsWith("*"))) {
    problem(
      `${path}.subjects`,
      `are not exact: sub can be the person behind a session; name each role, or pin ${AWS_PRINCIPAL}`,
    );
  }
  for (const one of audiences ?? []) {
    if (AUDIENCES_OF_OTHERS.test(one)) {
      problem(
        `${path}.audiences`,
        `${one} is the audience of another service, which could send its tokens here`,
      );
    }
  }
  for (const type of types) {
    if (type !== null && TYPES_OF_OTHERS.includes(mediaType(type))) {
      problem(`${path}.types`, `${type} is the type of another kind of JWT`);
    }
  }
  if (clients !== undefined && uses?.some((use) => use !== "grant")) {
    problem(
      `${path}.uses`,
      'is "grant" alone beside "clients": in another use its token alone would be enough',
    );
  }
}
