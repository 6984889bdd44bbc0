/** Initial access tokens (RFC 7591 3): who has one may register, so often, for so long, and for no more than this. */
import { clock, hash, random } from "../../src/adapters/crypto/system.ts";
import { INITIAL_TOKEN_PREFIX } from "../../src/flows/authorize-registration.ts";
import type { InitialToken } from "../../src/records.ts";
import type { Admin } from "../admin/record.ts";
import { describeOperator, describePolicy, recordAsAdmin } from "../admin/record.ts";
import { fields, time, word, words } from "../admin/text.ts";

export type InitialTokenWish = {
  registrationClass: string;
  grantTypes: readonly string[];
  scopes?: readonly string[];
  usesMax: number;
  expiresInSeconds: number;
  json: boolean;
};

const nowSeconds = (): number => Math.floor(clock.nowMs() / 1000);

export async function createInitialToken(admin: Admin, wish: InitialTokenWish): Promise<number> {
  const { registrationClass, grantTypes, scopes, usesMax, expiresInSeconds, json } = wish;
  const createdAtSeconds = nowSeconds();
  const token = `${INITIAL_TOKEN_PREFIX}${random.secret()}`;
  const row: InitialToken = {
    // The letters keep a hyphen from the front, where it would begin an option.
    id: `i_${random.id()}`,
    digest: hash.sha256(token),
    registrationClass,
    ceiling: { grantTypes, ...(scopes !== undefined && { scopes }) },
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
      detail: {
        id: row.id,
        class: registrationClass,
        grant_types: [...grantTypes],
        uses_max: usesMax,
        ...(scopes !== undefined && { scope: scopes.join(" ") }),
        expires_at: row.expiresAtSeconds,
        ...describeOperator(),
      },
    },
    initialToken: { add: row },
  });
  if (!recorded) throw new Error("a random id is taken");
  const shown = { id: row.id, initial_access_token: token, expires_at: row.expiresAtSeconds };
  if (json) admin.say(JSON.stringify(shown));
  else for (const [name, value] of Object.entries(shown)) admin.say(`${name} ${value}`);
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
    initialToken: { revoke: id, atSeconds: nowSeconds() },
  });
  if (recorded) admin.say(`Revoked: ${word(id)}. Clients that registered with it stay.`);
  else admin.complain(`There is no initial access token ${word(id)} here to revoke.`);
  return recorded ? 0 : 1;
}

export async function listInitialTokens({ store, say }: Admin): Promise<number> {
  for (const token of await store.registrations.initialTokens()) say(initialTokenLine(token, nowSeconds()));
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
