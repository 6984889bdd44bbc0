/** Signing keys on PostgreSQL, and their parts of the one statement that writes the journal (append.ts). */
import type { SigningKeyRow } from "../rows.ts";
import { fromSigningKeyRow, toSigningKeyRow } from "../rows.ts";
import type { KeyRows } from "../store.ts";
import type { Call } from "./pool.ts";

export function postgresKeys(call: Call): KeyRows {
  return {
    list: async () => {
      const rows = await call(
        (sql) => sql<SigningKeyRow[]>`select * from signing_key order by created_at, kid`,
      );
      return rows.map(fromSigningKeyRow);
    },
    insertIfNone: async (key) => {
      const row = toSigningKeyRow(key);
      const done = await call(
        (sql) => sql`
          insert into signing_key (kid, alg, purpose, state, public_jwk, private_jwe, created_at, since, replace_at,
            used_at)
          values (${row.kid}, ${row.alg}, ${row.purpose}, ${row.state}, ${row.public_jwk}, ${row.private_jwe},
            ${row.created_at}, ${row.since}, ${row.replace_at}, ${row.used_at})
          on conflict do nothing`,
      );
      return done.count === 1;
    },
    markUsed: async (kids, atSeconds) => {
      await call(
        (sql) => sql`
          update signing_key set used_at = ${atSeconds}
          where kid = any(array(select json_array_elements_text(${JSON.stringify(kids)}::text::json)))`,
      );
    },
  };
}
