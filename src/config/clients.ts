/** Pre-registered clients: each with the one way in which it proves itself. */
import { createHash } from "node:crypto";
import type * as v from "valibot";
import { apiAudience } from "../policy/own-target.ts";
import type { Client, ClientAuth } from "../settings/settings.ts";
import { parseJwkSet } from "../spec/rfc7517.ts";
import { CLIENT_ID_PREFIX } from "../spec/rfc7591.ts";
import type { Json } from "../spec/rfc8259.ts";
import { parseRegisteredCertificate, parseSubject } from "../spec/rfc8705.ts";
import type { Reader } from "./reader.ts";
import type { ClientFile, ConfigFile } from "./schema.ts";

type From = v.InferOutput<typeof ClientFile>;

export function readClients(config: ConfigFile, reader: Reader): ReadonlyMap<string, Client> {
  const clients = new Map<string, Client>();
  // What has a default is no exchange, and there is nothing but grants at a partner.
  const servers = config.targets.filter((target) => !("partner" in target));
  const targetNames = new Set([apiAudience(config.issuer), ...servers.flatMap(({ names }) => names)]);
  for (const [clientId, from] of Object.entries(config.clients)) {
    const path = `clients.${clientId}`;
    // PROD-2.1-2: the other two forms of a client_id are proven, not configured.
    if (!/^[\x21-\x7e]+$/.test(clientId) || clientId.includes("://")) {
      reader.problem(
        path,
        "is not a plain client_id: printable ASCII without spaces, and no URL or SPIFFE ID",
      );
    }
    if (clientId.startsWith(CLIENT_ID_PREFIX)) {
      reader.problem(path, `begins with ${CLIENT_ID_PREFIX}, as those do that the server makes`);
    }
    if (from.defaultTarget !== undefined && !targetNames.has(from.defaultTarget)) {
      reader.problem(`${path}.defaultTarget`, "is not the name of a resource server among the targets");
    }
    if (from.actorAccessToken && (from.workload === undefined || from.method.startsWith("spiffe_"))) {
      reader.problem(
        `${path}.actorAccessToken`,
        'is for a client that was given a "workload" and has no SVID',
      );
    }
    const auth = readAuth(path, from, config, reader);
    if (auth === undefined) continue;
    clients.set(clientId, {
      clientId,
      source: "configuration",
      auth,
      grantTypes: from.grantTypes,
      ...(from.workload !== undefined && { workload: from.workload }),
      ...(from.actorAccessToken && { actorAccessToken: true }),
      ...(from.defaultTarget !== undefined && { defaultTarget: from.defaultTarget }),
    });
  }
  return clients;
}

function readAuth(path: string, from: From, config: ConfigFile, reader: Reader): ClientAuth | undefined {
  switch (from.method) {
    case "client_secret_basic":
    case "client_secret_post": {
      const secrets = from.secrets.flatMap((one, index) => {
        const at = `${path}.secrets.${index}`;
        const value = reader.readSecret(at, one);
        if (value === undefined) return [];
        const digest = createHash("sha256").update(value, "utf8").digest("base64url");
        if (typeof one === "string" || one.expires === undefined) return [{ digest }];
        const expiresAtSeconds = readTime(one.expires);
        if (expiresAtSeconds !== undefined) return [{ digest, expiresAtSeconds }];
        reader.problem(`${at}.expires`, "is not in the calendar, or its time zone has no minutes");
        return [];
      });
      return { method: from.method, secrets };
    }
    case "private_key_jwt":
      return readKeys(path, from, config, reader);
    case "spiffe_jwt":
    case "spiffe_x509":
      return { method: from.method, spiffeId: from.spiffeId };
    case "tls_client_auth": {
      const anchors = reader.readAnchors(`${path}.ca`, from.ca);
      const subject = parseSubject(from as { readonly [name: string]: Json });
      // RFC8705-2.1.2-1
      if (!subject.ok)
        return reader.problem(path, `needs exactly one good tls_client_auth_… name (${subject.error.kind})`);
      return { method: from.method, subject: subject.value, anchors };
    }
    case "self_signed_tls_client_auth": {
      const read = from.jwks.keys.map((key) => parseRegisteredCertificate(key as Json));
      const certificates = read.flatMap((one) => (one.ok ? [one.value] : []));
      // RFC8705-2.2-1
      if (certificates.length < read.length || read.length === 0) {
        return reader.problem(`${path}.jwks`, "is not a set of keys that each have their certificate in x5c");
      }
      return { method: from.method, certificates };
    }
  }
}

/** Of what looks like a time: the platform takes the 31st of February for the 3rd of March. */
function readTime(text: string): number | undefined {
  const day = text.slice(0, 10);
  const [atMs, dayMs] = [Date.parse(text), Date.parse(day)];
  if (Number.isNaN(atMs) || Number.isNaN(dayMs)) return undefined;
  return new Date(dayMs).toISOString().startsWith(day) ? atMs / 1000 : undefined;
}

function readKeys(
  path: string,
  { jwks, jwksUri, vouchedBy }: Extract<From, { method: "private_key_jwt" }>,
  config: ConfigFile,
  reader: Reader,
): ClientAuth | undefined {
  if ([jwks, jwksUri, vouchedBy].filter((one) => one !== undefined).length !== 1) {
    return reader.problem(path, "needs exactly one of jwks, jwksUri and vouchedBy");
  }
  if (jwksUri !== undefined) {
    return { method: "private_key_jwt", jwksUri: reader.readRemote(`${path}.jwksUri`, jwksUri) };
  }
  if (vouchedBy !== undefined) {
    for (const [index, { issuer, claims }] of vouchedBy.entries()) {
      const at = `${path}.vouchedBy.${index}`;
      if (config.trustedIssuers[issuer]?.vouches === undefined) {
        reader.problem(`${at}.issuer`, 'is not a trusted issuer that "vouches"');
      }
      // RFC7523-5-1: an issuer vouches for certain tokens of its, never for all that it signs.
      if (Object.keys(claims).length === 0)
        reader.problem(`${at}.claims`, "names no claim, so every token would fit");
    }
    const vouchers = vouchedBy.map(({ issuer, claims }) => ({
      issuer,
      claims: new Map(Object.entries(claims)),
    }));
    return { method: "private_key_jwt", vouchers };
  }
  const keys = parseJwkSet(JSON.stringify(jwks));
  if (!keys.ok || keys.value.length === 0) {
    return reader.problem(
      `${path}.jwks`,
      `has no usable public key${keys.ok ? "" : ` (${keys.error.kind})`}`,
    );
  }
  return { method: "private_key_jwt", keys: keys.value };
}
