/**
 * `mandate clients initial-token`: initial access tokens (RFC 7591 3). A token permits a number of registrations until it
 * expires, and limits the grant types and scopes that they may have.
 */
import { clock } from "../../adapters/clock.ts";
import { hash } from "../../adapters/crypto/hash.ts";
import { random } from "../../adapters/crypto/random.ts";
import { INITIAL_TOKEN_PREFIX } from "../../flows/authorize-registration.ts";
import { EXIT } from "../../limits/process.ts";
import type { InitialToken } from "../../records.ts";
import { defined } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { operatorEvent, recordAsAdmin } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { fields, jsonLine, time, word, words } from "../text.ts";

export type NewInitialToken = {
  registrationClass: string;
  grantTypes: readonly string[];
  scopes?: readonly string[];
  usesMax: number;
  expiresInSeconds: number;
  json: boolean;
};

export async function createInitialToken(admin: Admin, wanted: NewInitialToken): Promise<number> {
  const { registrationClass, grantTypes, scopes, usesMax, expiresInSeconds, json } = wanted;
  const createdAtSeconds = clock.nowSeconds();
  const token = `${INITIAL_TOKEN_PREFIX}${random.secret()}`;
  const row: InitialToken = {
    // The prefix ensures that no id begins with a hyphen, which the command line would read as an option.
    id: `i_${random.id()}`,
    digest: hash.sha256(token),
    registrationClass,
    ceiling: defined<InitialToken["ceiling"]>({ grantTypes, scopes }),
    uses: 0,
    usesMax,
    createdAtSeconds,
    expiresAtSeconds: createdAtSeconds + expiresInSeconds,
  };
  const detail = defined<JsonObject>({
    id: row.id,
    class: registrationClass,
    grant_types: [...grantTypes],
    uses_max: usesMax,
    scope: scopes?.join(" "),
    expires_at: row.expiresAtSeconds,
  });
  const event = operatorEvent(admin.settings, "initial_access_token.created", detail);
  const recorded = await recordAsAdmin(admin.store, { event, initialToken: { add: row } });
  if (!recorded) throw new Error("the random id already exists");
  const shown = { id: row.id, initial_access_token: token, expires_at: row.expiresAtSeconds };
  if (json) admin.print(JSON.stringify(shown));
  else for (const [name, value] of Object.entries(shown)) admin.print(`${name} ${value}`);
  return EXIT.done;
}

export async function revokeInitialToken(admin: Admin, id: string): Promise<number> {
  const recorded = await recordAsAdmin(admin.store, {
    event: operatorEvent(admin.settings, "initial_access_token.revoked", { id }),
    initialToken: { revoke: id, atSeconds: clock.nowSeconds() },
  });
  if (recorded) admin.print(`Revoked: ${word(id)}. Clients that registered with it keep their registration.`);
  else
    admin.printError(
      `Initial access token ${word(id)} is unknown or revoked: see "clients initial-token list".`,
    );
  return recorded ? EXIT.done : EXIT.refused;
}

export async function listInitialTokens({ store, print }: Admin, json: boolean): Promise<number> {
  const show = json ? initialTokenRecord : initialTokenLine;
  for (const token of await store.registrations.initialTokens()) print(show(token, clock.nowSeconds()));
  return EXIT.done;
}

type InitialTokenState = "in-force" | "used-up" | "expired" | "revoked";

function stateOfInitialToken(token: InitialToken, atSeconds: number): InitialTokenState {
  if (token.revokedAtSeconds !== undefined) return "revoked";
  if (token.expiresAtSeconds <= atSeconds) return "expired";
  return token.uses < token.usesMax ? "in-force" : "used-up";
}

function initialTokenRecord(token: InitialToken, atSeconds: number): string {
  const { id, registrationClass, ceiling, uses, usesMax, expiresAtSeconds, revokedAtSeconds } = token;
  return jsonLine(
    defined<JsonObject>({
      id,
      state: stateOfInitialToken(token, atSeconds),
      class: registrationClass,
      grant_types: [...ceiling.grantTypes],
      scope: ceiling.scopes?.join(" "),
      uses,
      uses_max: usesMax,
      expires_at: expiresAtSeconds,
      revoked_at: revokedAtSeconds,
    }),
  );
}

export function initialTokenLine(token: InitialToken, atSeconds: number): string {
  const { id, registrationClass, ceiling, uses, usesMax, expiresAtSeconds, revokedAtSeconds } = token;
  const state = stateOfInitialToken(token, atSeconds);
  const rest = fields({
    class: word(registrationClass),
    "grant-type": words(ceiling.grantTypes),
    scope: ceiling.scopes && word(ceiling.scopes.join(" ")),
    uses: `${uses}/${usesMax}`,
    expires: time(expiresAtSeconds * 1000),
    revoked: revokedAtSeconds === undefined ? undefined : time(revokedAtSeconds * 1000),
  });
  return `${word(id)} ${state} ${rest}`;
}
