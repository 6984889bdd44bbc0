/** The URL of PostgreSQL that `mandate init` was told, with the authority that it names: both become files of the folder. */
import { dirname, join, resolve } from "node:path";
import { readNamed } from "../named-file.ts";

const AUTHORITY = "database-ca.pem";

/**
 * The file of the URL as the configuration names it. A URL without `sslrootcert` stays in its file, which another
 * program may renew.
 */
export function takeDatabase(
  store: string | undefined,
  folder: string,
): { store: string; files: readonly (readonly [name: string, content: string])[] } {
  if (store === undefined || store === "sqlite") return { store: "sqlite", files: [] };
  const url = readNamed(store);
  const named = new URLSearchParams(url.trim().split("?")[1]).get("sslrootcert");
  if (named === null || named === "system") return { store, files: [] };
  const authority = readNamed(resolve(dirname(store), named));
  const copied = url.replace(/([?&]sslrootcert=)[^&\s]*/, `$1${AUTHORITY}`);
  return {
    store: join(folder, "keys/database-url"),
    files: [
      [AUTHORITY, authority],
      ["keys/database-url", copied],
    ],
  };
}
