/** The `agents` section: whom it names, and what of it would be of no use. */
import { beginningOf } from "../audit/safe-text.ts";
import { SHOWN_TEXT_CHARS_MAX, SPIFFE_ID_BYTES_MAX } from "../limits/input.ts";
import { meant } from "../policy/nearest.ts";
import { type ConfiguredParties, isActor, member } from "../policy/parties.ts";
import { wordings } from "../policy/worded.ts";
import { defined } from "../result.ts";
import { type Agent, type Agents, compileAgents } from "../settings/agents.ts";
import { skeleton } from "../settings/look-alike.ts";
import { CLIENT_ID_PREFIX } from "../spec/rfc7591.ts";
import { matchesPattern, parseSpiffeId, prefixesOver } from "../spec/spiffe/id.ts";
import { isPlatformName, isWorkloadPattern } from "../spec/workload-grant.ts";
import type { LogoReader } from "./logos.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

type Clients = ConfiguredParties["clients"];

export function readAgents(config: ConfigFile, logos: Pick<LogoReader, "read">, reader: Reader): Agents {
  const ids = Object.keys(config.agents);
  const named = ids.length === 0 ? NOTHING : workloadsIn(config);
  for (const id of ids) {
    const path = `agents.${beginningOf(id, SHOWN_TEXT_CHARS_MAX)}`;
    if (!isName(id)) {
      reader.problem(
        path,
        "is neither a SPIFFE ID, a client_id nor an issuer; only a prefix of workloads or an https origin ends in /*",
      );
      continue;
    }
    const unused = namesNothing(id, config, named);
    if (unused !== undefined) reader.warnings.push(`${path}: ${unused}`);
  }
  warnOfAlike(config, reader);
  const agents = Object.entries(config.agents).map(
    ([id, { logo, ...agent }]) =>
      [id, defined<Agent>({ ...agent, logo: logos.read(`agents.${id}.logo`, logo) })] as const,
  );
  return compileAgents(Object.fromEntries(agents), config.pages.operator);
}

/** PROD-2.6-2: what may end in a slash and a star is as in rules. */
function isName(id: string): boolean {
  if (/^(?:spiffe|platform):/i.test(id)) return isWorkloadPattern(id);
  if (id.endsWith("/*")) return /^https:\/\/[^/]+\/\*$/.test(id);
  return id.length <= SPIFFE_ID_BYTES_MAX && /^[\x21-\x7e]+$/.test(id);
}

const UNNAMED = "is in no rule, target or client, so that it never acts here: correct or remove it";

/** Workloads and prefixes that rules, targets and clients name; `over` has each prefix over one of them, too. */
type Named = { ids: ReadonlySet<string>; over: ReadonlySet<string> };

const NOTHING: Named = { ids: new Set(), over: new Set() };

function workloadsIn(config: ConfigFile): Named {
  const { policies, targets } = config;
  const clients: Clients = config.clients;
  const ids = [
    ...policies.flatMap((rule) => rule.actors ?? []),
    ...targets.flatMap((target) => ("partner" in target ? [] : target.owners)),
    ...Object.values(clients).flatMap(({ workload, spiffeId }) => [workload, spiffeId]),
  ].filter((one) => one !== undefined);
  return { ids: new Set(ids), over: new Set([...ids, ...ids.flatMap(prefixesOver)]) };
}

const isNamed = (id: string, { ids, over }: Named): boolean =>
  over.has(id) || prefixesOver(id).some((prefix) => ids.has(prefix));

function namesNothing(id: string, config: ConfigFile, named: Named): string | undefined {
  const { clients, trustDomains, trustedIssuers, targets, clientMetadataDocuments } = config;
  const workload = parseSpiffeId(id.replace(/\/\*$/, ""));
  if (workload.ok) {
    const { trustDomain } = workload.value;
    if (!Object.hasOwn(trustDomains, trustDomain))
      return `names no workload: ${trustDomain} is none of trustDomains`;
    return isNamed(id, named) ? undefined : UNNAMED;
  }
  if (isPlatformName(id)) {
    if (!isActor(id, { trustDomains, trustedIssuers, clients, workloads: new Set() }))
      return "names no workload: no issuer has such a registration in its workloads";
    return isNamed(id, named) ? undefined : UNNAMED;
  }
  const partners = targets.flatMap((target) => ("partner" in target ? target.names : []));
  const known = [...Object.keys(clients), ...Object.keys(trustedIssuers), ...partners];
  const mayBe = id.startsWith("https://")
    ? clientMetadataDocuments !== undefined
    : id.startsWith(CLIENT_ID_PREFIX);
  return mayBe || known.includes(id)
    ? undefined
    : `names no client, issuer or partner that is configured${meant(id, known)}`;
}

/** Two agents with one title, or with titles that only look alike, are told apart by no reader. */
function warnOfAlike({ agents, clients }: ConfigFile, { warnings }: Reader): void {
  const seen = new Map<string, { id: string; title: string }>();
  for (const [id, { title }] of Object.entries(agents)) {
    for (const one of wordings(title)) {
      const other = seen.get(skeleton(one));
      if (other === undefined) {
        seen.set(skeleton(one), { id, title: one });
      } else if (other.title !== one) {
        warnings.push(
          `agents.${id}.title: ${JSON.stringify(one)} looks like ${JSON.stringify(other.title)}, the title of another agent`,
        );
      } else if (!isSameAgent(id, other.id, clients)) {
        warnings.push(
          `agents.${id}.title: ${JSON.stringify(one)} is also the title of ${other.id}: give each agent a title of its own`,
        );
      }
    }
  }
}

/** One agent may have several ids: a client and its workload, or a prefix and one workload within it. */
function isSameAgent(one: string, other: string, clients: Clients): boolean {
  const isOf = (client: string, id: string): boolean => {
    const { workload, spiffeId } = member(clients, client) ?? {};
    return workload === id || spiffeId === id;
  };
  const within = matchesPattern(one, other) || matchesPattern(other, one);
  return one === other || within || isOf(one, other) || isOf(other, one);
}
