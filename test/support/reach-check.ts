/**
 * Checks the certificate of a no: that its tokens cover every token that any request leads to, and that none of them is what
 * was asked for. It reads the configuration itself and shares no code with the search. It is for configurations without
 * classes, metadata documents, platforms and clients with SPIFFE credentials, and refuses others.
 */
import type { Certificate, CheckedConfig, Json, Origin, Rule, Target, Token } from "./reach-types.ts";

type Caller = { client: string; workload?: string | undefined };
/** What a request presents; without `token` it is of another issuer, which signs whatever it takes. */
type Shown = Origin & { kind: string; token?: Token; name?: string; mayAct?: string | undefined };
const below = (pattern: string, id: string | undefined): boolean =>
  id !== undefined && (pattern.endsWith("/*") ? id.startsWith(pattern.slice(0, -1)) : id === pattern);
const words = (text: string): string[] => text.split(" ");
const namesOf = ({ names, issuer = "", aliases = [] }: Target): string[] => names ?? [issuer, ...aliases];
const tableOf = ({ subjects }: Pick<Target, "subjects">) => (typeof subjects === "object" ? subjects : {});
const OTHER = "any subject that nothing names";
const kindOf = ({ subjectToken, allow = "" }: Rule): string =>
  subjectToken ? "token" : ({ client_credentials: "none", redemption: "grant" }[allow] ?? "code");
/** Every text in a part of the configuration, names of members too. */
const textsIn = (json: Json): string[] =>
  typeof json === "object"
    ? Object.entries(json).flatMap(([name, one]) => [name, ...textsIn(one)])
    : [`${json}`];

/** Undefined for a good certificate, or else what is wrong with it. */
export function checkCertificate(config: CheckedConfig, { claim, tokens }: Certificate): string | undefined {
  const { issuer: us, policies, targets, trustedIssuers, clients, trustDomains, signIn } = config;
  const isStrange =
    policies.some((one) => one.classes ?? one.clients?.some((name) => name.includes("://"))) ||
    [...Object.values(clients), ...Object.values(trustedIssuers)].some(
      (one) => "spiffeId" in one || "workloads" in one,
    );
  if (isStrange) return "the configuration has what this does not read";
  const byName = new Map(targets.flatMap((one) => namesOf(one).map((name) => [name, one])));
  if (claim.target !== undefined && !byName.has(claim.target)) return "what is asked for is no target";
  const targetOf = (name: string): Target => byName.get(name) ?? { scopes: [] };
  const owns = (workload: string | undefined, name: string): boolean =>
    targetOf(name).owners?.some((one) => below(one, workload)) ?? false;

  // --- who there is: each name in the configuration, and two below each prefix for all others there
  const texts = textsIn([policies, targets, trustDomains, clients, claim.actor ?? ""] as unknown as Json);
  const areSubjects = policies.some(({ subjects }) => subjects?.issuers.includes(us));
  const standIns = areSubjects ? ["any", "any-other"] : ["any"];
  const callers: Caller[] = [
    ...Object.entries(clients).map(([client, { workload }]) => ({ client, workload })),
    ...new Set(
      texts.flatMap((one) => (one.endsWith("/*") ? standIns.map((name) => one.slice(0, -1) + name) : one)),
    ),
  ].flatMap((one) => {
    if (typeof one === "object") return [one];
    const { admit = "all" } = trustDomains[one.split("/")[2] ?? ""] ?? { admit: "none" };
    const isAdmitted =
      admit === "all" || (admit !== "none" && [admit].flat().some((pattern) => below(pattern, one)));
    return isAdmitted && /^spiffe:\/\/[^/]+\/./.test(one) ? [{ client: one, workload: one }] : [];
  });
  const hereOf = (iss: string, sub: string): string | undefined => {
    if (iss === us) return sub;
    const { disabledSubjects = [], ...rest } = trustedIssuers[iss] ?? { subjects: "keep" };
    const { prefix, table } = tableOf(rest);
    const taken = Object.entries(trustedIssuers).some(([other, one]) => {
      const { prefix: theirs, table: named } = tableOf(one);
      const isTheirs = Object.values(named ?? {}).includes(sub) || (theirs && sub.startsWith(theirs));
      return other !== iss && rest.subjects === "keep" && isTheirs;
    });
    if (taken || disabledSubjects.includes(sub) || sub.includes("://")) return undefined;
    const here = table === undefined ? `${prefix ?? ""}${sub}` : (table[sub] ?? "");
    return here === "" || here in clients ? undefined : here;
  };
  const subsOf = (iss: string): string[] => {
    const { prefix = "", table } = tableOf(trustedIssuers[iss] ?? {});
    const inRules = policies.flatMap(({ subjects }) =>
      subjects?.issuers.includes(iss) ? (subjects.subs ?? []) : [],
    );
    const atPartners = targets
      .flatMap((one) => Object.keys(tableOf(one).table ?? {}))
      .map((one) => one.slice(prefix.length));
    const all = table === undefined ? [OTHER, ...inRules, ...atPartners] : Object.keys(table);
    const asked = claim.subject === undefined ? all : claim.subject.iss === iss ? [claim.subject.sub] : [];
    return [...new Set(asked)].filter((sub) => hereOf(iss, sub) !== undefined);
  };
  const isNamed = ({ actors, clients }: Rule, { client, workload }: Caller): boolean =>
    actors?.some((one) => below(one, workload)) !== false && clients?.includes(client) !== false;

  // --- what covers what
  const isAs = (one: Token, of: Token): boolean =>
    one.target === of.target && one.may_act === of.may_act && one.subject.iss === of.subject.iss;
  const isFree = (one: Token, of: Token): boolean =>
    (one.subject.any || one.subject.sub === of.subject.sub) &&
    (one.bound_to ?? of.bound_to) === of.bound_to &&
    (!one.in_job || of.in_job);
  const hasAll = (one: Token, of: Token): boolean =>
    words(of.scope).every((scope) => words(one.scope).includes(scope)) && (one.by_actor || !of.by_actor);
  const isCovered = (of: Token): boolean =>
    tokens.some((one) => isAs(one, of) && isFree(one, of) && hasAll(one, of) && one.hops <= of.hops);
  const isClaimed = ({ by_actor, target, subject }: Token): boolean =>
    (claim.actor === undefined || by_actor) &&
    (claim.target === undefined || namesOf(targetOf(claim.target)).includes(target)) &&
    (claim.subject === undefined || (claim.subject.iss === subject.iss && claim.subject.sub === subject.sub));

  // --- one request
  const proofs = ["", "jkt", ...(signIn === undefined || config.mtls || config.proxy ? ["x5t#S256"] : [])];

  function* asked(rule: Rule, caller: Caller, shown: Shown): Generator<Token> {
    const { client, workload } = caller;
    const { kind, token, name = "", iss, sub, mayAct } = shown;
    const me = kind === "code" ? client : (workload ?? client);
    const isDelegation = rule.allow === "delegation";
    const isHidden = rule.allow === "impersonation";
    const parties = isDelegation ? [workload] : [client, workload];
    if (kindOf(rule) !== kind || !isNamed(rule, caller)) return;
    if (isDelegation ? workload === undefined : kind === "code" && clients[client] === undefined) return;
    if (kind !== "none") {
      if (!rule.subjects?.issuers.includes(iss) || rule.subjects.subs?.includes(sub) === false) return;
      if (iss === us && parties.includes(sub)) return;
      if (mayAct === undefined ? rule.consent === "may_act" : !parties.includes(mayAct)) return;
    }
    const isMine = token !== undefined && (name === client || name === workload || owns(workload, name));
    const has = (scope: string): boolean => token === undefined || words(token.scope).includes(scope);
    if (kind === "token") {
      const { audiences = [], scopes = [] } = rule.subjectToken ?? {};
      const owned = token === undefined ? targets.flatMap(namesOf) : [name];
      const isSelf = audiences.includes("self") && owned.some((one) => owns(workload, one));
      const isListed =
        token === undefined ? audiences.some((one) => one !== "self") : audiences.includes(name);
      const byName = (isSelf || isListed) && (token === undefined || isMine);
      if ((!byName && !scopes.some(has)) || (token !== undefined && token.hops > 0 && !isMine)) return;
    }
    const hops = isHidden ? 0 : (token?.hops ?? 0) + (isDelegation ? 1 : 0);
    if (hops > (rule.maxChainDepth ?? 8)) return;
    for (const at of new Set(rule.targets.map(targetOf))) {
      const scope = rule.scopes.filter((one) => at.scopes.includes(one) && has(one));
      const isPartner = at.issuer !== undefined;
      const { table } = tableOf(at);
      const isKnown = table === undefined || (sub !== OTHER && Object.hasOwn(table, hereOf(iss, sub) ?? ""));
      for (const in_job of token?.in_job ? [true] : [false, true]) {
        const leaves = !in_job || !isPartner || at.jobs === "honours" || rule.acknowledgeJob !== undefined;
        if (scope.length === 0 || !isKnown || !leaves || rule.jobs === (in_job ? "never" : "required"))
          continue;
        for (const proof of proofs) {
          const bound = token?.bound_to ?? `${proof} ${me}`;
          if (bound !== `${proof} ${me}` && !(rule.boundSubject === "audience" && isMine)) continue;
          const inherited =
            token?.bound_to === undefined || rule.unbound ? "none" : isPartner ? "dpop" : "any";
          const demand = (at.binding ?? "none") === "none" ? inherited : at.binding;
          const isMet =
            proof === "jkt"
              ? demand !== "certificate"
              : demand === "none" || (proof !== "" && demand !== "dpop");
          if (!isMet) continue;
          const isBound = proof === "jkt" || (proof !== "" && demand !== "none");
          yield {
            subject: { iss, sub },
            target: namesOf(at)[0] ?? "",
            scope: scope.join(" "),
            hops,
            in_job,
            by_actor:
              token?.by_actor === true || [client, workload].some((one) => below(claim.actor ?? "", one)),
            ...(mayAct !== undefined && !isHidden && { may_act: mayAct }),
            ...(isBound && { bound_to: `${proof} ${me}` }),
          };
        }
      }
    }
  }

  // --- every request: with nothing, with what issuers sign, and with each token of the certificate
  function* allShown(caller: Caller): Generator<Shown> {
    yield { kind: "none", iss: us, sub: caller.client };
    // To be named helps where a rule wants it, and else only hinders others.
    const isWanted = policies.some((one) => one.consent === "may_act" && isNamed(one, caller));
    for (const [iss, { acceptAs = ["jwt"], grants }] of Object.entries(trustedIssuers)) {
      const isProvider = Object.values(signIn?.providers ?? {}).some((one) => one.issuer === iss);
      const kinds = { token: acceptAs.length > 0, grant: grants !== undefined, code: isProvider };
      for (const [kind, isOn] of Object.entries(kinds))
        for (const sub of isOn ? subsOf(iss) : [])
          for (const mayAct of isWanted && kind !== "code"
            ? [undefined, caller.workload ?? caller.client]
            : [undefined])
            yield { kind, iss, sub, mayAct };
    }
    for (const token of tokens.filter(({ target }) => targetOf(target).issuer === undefined))
      for (const name of namesOf(targetOf(token.target)))
        for (const sub of token.subject.any ? subsOf(token.subject.iss) : [token.subject.sub])
          yield { kind: "token", iss: token.subject.iss, sub, token, name, mayAct: token.may_act };
  }
  if (tokens.some(isClaimed)) return "a token is what was asked for";
  for (const caller of callers)
    for (const shown of allShown(caller))
      for (const rule of policies)
        for (const given of asked(rule, caller, shown)) {
          const what = isClaimed(given)
            ? "is what was asked for"
            : isCovered(given)
              ? undefined
              : "is not covered";
          if (what !== undefined) return `rule ${rule.id} gives ${JSON.stringify(given)}, which ${what}`;
        }
  return undefined;
}
