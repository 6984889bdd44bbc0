/**
 * The `consents` section: the issuers whose users manage their own consents; and the names reserved for our endpoints.
 */
import { consentsAudience, reservedNames } from "../policy/own-target.ts";
import type { ConsentIssuer } from "../settings/settings.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

/** The issuers of the section by their identifier. */
export function readConsents(config: ConfigFile, { problem }: Reader): ReadonlyMap<string, ConsentIssuer> {
  const { issuer, consents, targets, trustedIssuers } = config;
  const reserved = reservedNames(issuer);
  for (const [index, { names }] of targets.entries()) {
    for (const name of names.filter((one) => reserved.includes(one))) {
      problem(`targets.${index}.names`, `${name} is reserved for this server`);
    }
  }
  for (const [name, { audiences = [] }] of Object.entries(trustedIssuers)) {
    // A subject token that is also accepted at the consent endpoint would let its holder consent in the user's name.
    if (audiences.some((audience) => reserved.includes(audience))) {
      problem(
        `trustedIssuers.${name}.audiences`,
        `names an endpoint of this server: subject tokens must be for ${issuer}`,
      );
    }
  }
  const found = new Map<string, ConsentIssuer>();
  for (const [name, from] of Object.entries(consents.issuers)) {
    if (trustedIssuers[name] === undefined) {
      problem(
        `consents.issuers.${name}`,
        `is not in trustedIssuers, so its tokens for ${consentsAudience(issuer)} cannot be verified`,
      );
    }
    const types = from.types.map((type) => type ?? undefined);
    found.set(name, { ...from, clients: new Set(from.clients), types });
  }
  return found;
}
