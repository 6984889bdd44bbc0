/**
 * `mandate agents explain`: which workload a JWT of a platform or of a trust domain would be here, by which rule of naming,
 * and which rules of the policy name it. Nothing is fetched, recorded or kept, and no signature is verified.
 */
import { clock } from "../../adapters/clock.ts";
import { REASONS, type Reason } from "../../audit/reasons.ts";
import { loadSettings } from "../../config/config.ts";
import { EXIT } from "../../limits/process.ts";
import { MODE_NAMES } from "../../modes.ts";
import { clientsOf, listsFor, type Rule } from "../../policy/rules.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { assertionAudiences, TOKEN_PATH } from "../../settings/audiences.ts";
import type { Settings } from "../../settings/settings.ts";
import { type Jws, parseJws } from "../../spec/rfc7515.ts";
import { isAdmitted } from "../../spec/spiffe/client-auth.ts";
import { parseSpiffeId } from "../../spec/spiffe/id.ts";
import { checkWorkload, matchRegistration } from "../../spec/workload-grant.ts";
import { type Command, onFiles } from "../command.ts";
import { readNamed } from "../named-file.ts";
import { type CommandArguments, configOf } from "../options.ts";
import { fields, jsonLine, word, words } from "../text.ts";

type Named = {
  id: string;
  /** What the name is made of: `sub`, or the claims that the registration names. */
  namedBy: readonly string[];
  registration?: string;
  /** The clients beside which alone its grants count. */
  clients?: readonly string[];
  /** Why a token like this would be refused now. */
  refused?: Reason;
};

export const explainAgent = (given: CommandArguments): Result<Command, string> => {
  const [token = ""] = given.args;
  const [configFile, json] = [configOf(given), given.has("json")];
  return onFiles(async ({ print, printError }) => {
    const loaded = loadSettings(configFile);
    if (!loaded.ok) {
      printError(`Invalid configuration in ${configFile}:`);
      for (const problem of loaded.error) printError(`  ${problem}`);
      return EXIT.unusable;
    }
    const { settings } = loaded.value;
    const named = nameIn(settings, readToken(token));
    if (!named.ok) {
      if (json) print(jsonLine({ reason: named.error, says: REASONS[named.error] }));
      else printError(`It is no workload here: ${REASONS[named.error]} (${named.error}).`);
      return EXIT.refused;
    }
    for (const line of json ? [asJson(settings, named.value)] : asText(settings, named.value)) print(line);
    return named.value.refused === undefined ? EXIT.done : EXIT.refused;
  });
};

const STANDARD_INPUT = "-";

/** What is no JWT is the name of a file with one, in which a line break at the end is usual. */
const readToken = (given: string): string =>
  given.split(".").length === 3 && given.startsWith("ey")
    ? given
    : readNamed(given === STANDARD_INPUT ? "/dev/stdin" : given).trim();

function nameIn(settings: Settings, compact: string): Result<Named, Reason> {
  const jws = parseJws(compact);
  if (!jws.ok) return err(jws.error.kind);
  const { iss, sub } = jws.value.claims;
  const issuer = typeof iss === "string" ? settings.trustedIssuers.get(iss) : undefined;
  if (issuer !== undefined && issuer.workloads.length > 0)
    return nameOfPlatform(settings, issuer.workloads, jws.value);
  const spiffeId = parseSpiffeId(typeof sub === "string" ? sub : "");
  if (!spiffeId.ok) return err(issuer === undefined ? "issuer_unknown" : "workload_not_registered");
  const { id, trustDomain } = spiffeId.value;
  const domain = settings.trustDomains.get(trustDomain);
  if (domain === undefined) return err("trust_domain_unknown");
  const refused = isAdmitted(domain.admit, id) ? undefined : "workload_not_admitted";
  return ok(defined<Named>({ id, namedBy: ["sub"], refused }));
}

function nameOfPlatform(
  settings: Settings,
  registrations: Parameters<typeof matchRegistration>[0],
  jws: Jws,
): Result<Named, Reason> {
  const match = matchRegistration(registrations, jws.claims);
  if (!match.ok) return err(match.error.kind);
  const { registration } = match.value;
  const checkAt = (nowSeconds: number) =>
    checkWorkload(jws, registration, {
      audiences: assertionAudiences(settings, TOKEN_PATH),
      nowSeconds,
      skewSeconds: settings.clockSkewSeconds,
      isTrustDomain: (name) => settings.trustDomains.has(name),
    });
  // A token at hand has often ended, and has the same name all the same.
  const { iat } = jws.claims;
  const [now, then] = [checkAt(clock.nowSeconds()), checkAt(typeof iat === "number" ? iat : 0)];
  if (!then.ok) return err(then.error.kind);
  return ok(
    defined<Named>({
      id: then.value.id,
      namedBy: registration.namedBy ?? ["sub"],
      registration: registration.name,
      clients: registration.clients,
      refused: now.ok ? undefined : now.error.kind,
    }),
  );
}

/** The rules that name it; what else they demand is for `mandate explain`. */
function rulesFor({ policy }: Settings, { id, clients }: Named): readonly Rule[] {
  const callers = [id, ...(clients ?? [])].map((clientId) => ({ clientId, workload: id }));
  const found = callers.flatMap((caller) =>
    MODE_NAMES.flatMap((mode) => listsFor(policy, { ...caller, mode }).flat()),
  );
  // PLAT-D-10: beside a client it is allowed only what a rule allows that names both.
  const named = found.filter(
    (rule) => clients === undefined || (rule.actors !== undefined && clientsOf(rule) !== undefined),
  );
  return [...new Set(named)].sort((a, b) => (a.id < b.id ? -1 : 1));
}

const asJson = (settings: Settings, named: Named): string => {
  const { namedBy: named_by, ...rest } = named;
  const rules = rulesFor(settings, named).map(({ id, allow, targets, scopes }) => ({
    id,
    allow,
    targets,
    scopes,
  }));
  return jsonLine({ ...rest, named_by, rules });
};

function asText(settings: Settings, named: Named): readonly string[] {
  const { id, namedBy, registration, clients, refused } = named;
  const rules = rulesFor(settings, named);
  return [
    fields({ id: word(id), named_by: words(namedBy), registration, clients: clients && words(clients) }),
    ...(refused === undefined ? [] : [`A token like this is refused now: ${REASONS[refused]} (${refused}).`]),
    rules.length === 0
      ? "No rule names it, so that it gets nothing."
      : "Rules that name it; what else they demand, `mandate explain` says:",
    ...rules.map((rule) =>
      fields({
        rule: word(rule.id),
        allow: rule.allow,
        targets: words(rule.targets),
        scope: words(rule.scopes),
      }),
    ),
    "Not verified: the signature.",
  ];
}
