/** Converts the rows of sign-in and authorization to records and back, as in both stores. */
import type { ShortLived, ShortLivedKind } from "../../records.ts";
import { defined } from "../../result.ts";

/** `body` is JSON, in which every character can be escaped. `browser` is the holder: the column is older than other ones. */
export type ShortLivedRow = {
  kind: string;
  key: string;
  version: number;
  browser: string | null;
  body: string;
  expires_at: number;
};

export function toShortLivedRow({
  kind,
  key,
  version,
  holder,
  body,
  expiresAtSeconds,
}: ShortLived): ShortLivedRow {
  return {
    kind,
    key,
    version,
    browser: holder ?? null,
    body: JSON.stringify(body),
    expires_at: expiresAtSeconds,
  };
}

export function fromShortLivedRow<K extends ShortLivedKind>(kind: K, row: ShortLivedRow): ShortLived<K> {
  return defined<ShortLived<K>>({
    kind,
    key: row.key,
    version: row.version,
    holder: row.browser ?? undefined,
    body: JSON.parse(row.body),
    expiresAtSeconds: row.expires_at,
  });
}
