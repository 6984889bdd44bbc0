/** Clients that are not configured: how they register, whose documents are accepted, and what their URLs may reach. */
import { defined } from "../result.ts";
import type { ClientDocumentSettings, Reach, RegistrationSettings } from "../settings/settings.ts";
import { DRAFT as DOCUMENTS_DRAFT } from "../spec/cimd.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

export function readRegistrationSettings({ registration }: ConfigFile, reader: Reader): RegistrationSettings {
  const { tlsAuthorities, ...asWritten } = registration;
  if (asWritten.mode === "open" && asWritten.open === undefined) {
    reader.problem(
      "registration.open",
      'is missing: mode "open" requires the scopes that a client without a token may have',
    );
  }
  return defined<RegistrationSettings>({
    ...asWritten,
    tlsAnchors: tlsAuthorities && reader.readAnchors("registration.tlsAuthorities", tlsAuthorities),
  });
}

export function readDocuments(
  { clientMetadataDocuments: from, drafts }: ConfigFile,
  reader: Reader,
): ClientDocumentSettings | undefined {
  if (from === undefined) return undefined;
  // PROD-9.2-11: an operator acknowledges a draft before it is used.
  if (!drafts.includes(DOCUMENTS_DRAFT)) {
    reader.problem(
      "drafts",
      `clientMetadataDocuments follow "${DOCUMENTS_DRAFT}", which must be acknowledged here by that name`,
    );
  }
  return defined<ClientDocumentSettings>({ ...from, origins: from.origins && new Set(from.origins) });
}

export function readOrigins({ clientOrigins }: ConfigFile, reader: Reader): ReadonlyMap<string, Reach> {
  return new Map(
    Object.entries(clientOrigins).map(([origin, from]) => [
      origin,
      reader.readSuppliedReach(`clientOrigins.${origin}`, from),
    ]),
  );
}
