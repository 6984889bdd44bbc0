/** The `agents` section: whom it names, and what of it would be of no use. */
import { beginningOf } from "../audit/safe-text.ts";
import { SHOWN_TEXT_CHARS_MAX, SPIFFE_ID_BYTES_MAX } from "../limits/input.ts";
import { meant } from "../policy/nearest.ts";
import { isActor } from "../policy/parties.ts";
import { wordings } from "../policy/worded.ts";
import type { Agents } from "../settings/agents.ts";
import { compileAgents } from "../settings/agents.ts";
import { skeleton } from "../settings/look-alike.ts";
import { CLIENT_ID_PREFIX } from "../spec/rfc7591.ts";
import { parseSpiffeId } from "../spec/spiffe/id.ts";
import { isPlatformName, isWorkloadPattern } from "../spec/workload-grant.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

export function readAgents(config: ConfigFile, reader: Reader): Agents {
  for (const id of Object.keys(config.agents)) {
    const path = `agents.${beginningOf(id, SHOWN_TEXT_CHARS_MAX)}`;
    if (!isName(id)) {
      reader.problem(
        path,
        "is neither a SPIFFE ID, a client_id nor an issuer; only a prefix of workloads or an https origin ends in /*",
      );
      continue;
    }
    const unused = namesNothing(id, config);
    if (unused !== undefined) reader.warnings.push(`${path}: ${unused}`);
  }
  warnOfAlike(config, reader);
  return compileAgents(config.agents, config.pages.operator);
}

/** PROD-2.6-2: what may end in a slash and a star is as in rules. */
function isName(id: string): boolean {
  if (/^(?:spiffe|platform):/i.test(id)) return isWorkloadPattern(id);
  if (id.endsWith("/*")) return /^https:\/\/[^/]+\/\*$/.test(id);
  return id.length <= SPIFFE_ID_BYTES_MAX && /^[\x21-\x7e]+$/.test(id);
}

function namesNothing(id: string, config: ConfigFile): string | undefined {
  const { clients, trustDomains, trustedIssuers, targets, clientMetadataDocuments } = config;
  const workload = parseSpiffeId(id.replace(/\/\*$/, ""));
  if (workload.ok) {
    const { trustDomain } = workload.value;
    return Object.hasOwn(trustDomains, trustDomain)
      ? undefined
      : `names no workload: ${trustDomain} is none of trustDomains`;
  }
  if (isPlatformName(id)) {
    return isActor(id, { trustDomains, trustedIssuers, clients, workloads: new Set() })
      ? undefined
      : "names no workload: no issuer has such a registration in its workloads";
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

/** One agent may have its title under several ids; two titles that only look alike are told apart by no reader. */
function warnOfAlike({ agents }: ConfigFile, { warnings }: Reader): void {
  const seen = new Map<string, string>();
  for (const [id, { title }] of Object.entries(agents)) {
    for (const one of wordings(title)) {
      const other = seen.get(skeleton(one));
      if (other !== undefined && other !== one) {
        warnings.push(
          `agents.${id}.title: ${JSON.stringify(one)} looks like ${JSON.stringify(other)}, the title of another agent`,
        );
      }
      seen.set(skeleton(one), other ?? one);
    }
  }
}
