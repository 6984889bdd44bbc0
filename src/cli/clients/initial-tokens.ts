/**
 * `mandate clients initial-token`: initial access tokens (RFC 7591 3). A token permits a number of registrations until it
 * expires, and limits the grant types and scopes that they may have.
 */
import { clock, hash, random } from "../../adapters/crypto/system.ts";
import { INITIAL_TOKEN_PREFIX } from "../../flows/authorize-registration.ts";
import type { InitialToken } from "../../records.ts";
import { defined } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { Admin } from "../command.ts";
import { describeOperator, describePolicy, recordAsAdmin } from "../record.ts";
import { fields, time, word, words } from "../text.ts";

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
  const recorded = await recordAsAdmin(admin.store, {
    event: {
      type: "initial_access_token.created",
      outcome: "allow",
      reason: "by_operator",
      policy: describePolicy(admin.settings),
      detail: defined<JsonObject>({
        id: row.id,
        class: registrationClass,
        grant_types: [...grantTypes],
        uses_max: usesMax,
        scope: scopes?.join(" "),
        expires_at: row.expiresAtSeconds,
        ...describeOperator(),
      }),
    },
    initialToken: { add: row },
  });
  if (!recorded) throw new Error("the random id already exists");
  const shown = { id: row.id, initial_access_token: token, expires_at: row.expiresAtSeconds };
  if (json) admin.print(JSON.stringify(shown));
  else for (const [name, value] of Object.entries(shown)) admin.print(`${name} ${value}`);
  return 0;
}

export async function revokeInitialToken(admin: Admin, id: string): Promise<number> {
  const recorded = await recordAsAdmin(admin.store, {
    event: {
      type: "initial_access_token.revoked",
      outcome: "allow",
      reason: "by_operator",
      policy: describePolicy(admin.settings),
      detail: { id, ...describeOperator() },
    },
    initialToken: { revoke: id, atSeconds: clock.nowSeconds() },
  });
  if (recorded) admin.print(`Revoked: ${word(id)}. Clients that registered with it keep their registration.`);
  else admin.printError(`Initial access token ${word(id)} is unknown or revoked: see "initial-token list".`);
  return recorded ? 0 : 1;
}

export async function listInitialTokens({ store, print }: Admin): Promise<number> {
  for (const token of await store.registrations.initialTokens())
    print(initialTokenLine(token, clock.nowSeconds()));
  return 0;
}

export function initialTokenLine(token: InitialToken, atSeconds: number): string {
  const { id, registrationClass, ceiling, uses, usesMax, expiresAtSeconds, revokedAtSeconds } = token;
  let state = uses < usesMax ? "in-force" : "used-up";
  if (expiresAtSeconds <= atSeconds) state = "expired";
  if (revokedAtSeconds !== undefined) state = "revoked";
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
