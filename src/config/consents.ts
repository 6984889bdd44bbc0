/** Whose users manage their consents here, and which names are kept for our own endpoints. */
import { consentsAudience, reservedNames } from "../policy/own-target.ts";
import type { ConsentIssuer } from "../settings/settings.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

export function readConsents(config: ConfigFile, { problem }: Reader): ReadonlyMap<string, ConsentIssuer> {
  const { issuer, consents, targets, trustedIssuers } = config;
  const reserved = reservedNames(issuer);
  for (const [index, { names }] of targets.entries()) {
    for (const name of names.filter((one) => reserved.includes(one))) {
      problem(`targets.${index}.names`, `${name} is a name of this server itself`);
    }
  }
  for (const [name, { audiences = [] }] of Object.entries(trustedIssuers)) {
    // A token that could be exchanged as well would let whoever holds it consent in its subject's name.
    if (audiences.some((audience) => reserved.includes(audience))) {
      problem(`trustedIssuers.${name}.audiences`, "names an endpoint of this server, not the server");
    }
  }
  const found = new Map<string, ConsentIssuer>();
  for (const [name, { clients, types }] of Object.entries(consents.issuers)) {
    if (trustedIssuers[name] === undefined) {
      problem(
        `consents.issuers.${name}`,
        `is not a trusted issuer, whose keys would vouch for ${consentsAudience(issuer)}`,
      );
    }
    found.set(name, { clients: new Set(clients), types: types.map((type) => type ?? undefined) });
  }
  return found;
}
