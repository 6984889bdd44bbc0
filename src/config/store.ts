/** The `store` section: a file, or the connection URL of a PostgreSQL database and how its server is verified. */
import { resolve } from "node:path";
import { defined } from "../result.ts";
import type { StorePlace } from "../settings/settings.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";
import { isLoopbackHost } from "./values.ts";

type PostgresPlace = Extract<StorePlace, { postgres: string }>;

export function readStore({ store, profile }: ConfigFile, folder: string, reader: Reader): StorePlace {
  if ("sqlite" in store) return { sqlite: resolve(folder, store.sqlite) };
  const { connections } = store;
  const text = reader.readSecret("store.postgres", store.postgres);
  if (text === undefined) return { postgres: "", connections };
  const url = parseDatabaseUrl(text);
  if (url === undefined) {
    // Without the text, which holds a password.
    reader.problem("store.postgres", "is not a connection URL (postgres://…)");
    return { postgres: "", connections };
  }
  const read = readTls(text, reader);
  const isFar = url.hostname !== "" && !isLoopbackHost(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  if (read.tls === undefined && profile === "production" && isFar) {
    reader.warnings.push(
      "store.postgres: the server of the database is not verified, so another one could take its place and read everything: add sslmode=verify-full, and sslrootcert=FILE for a private authority",
    );
  }
  return defined<PostgresPlace>({ postgres: read.url, connections, tls: read.tls });
}

const VERIFIED = ["verify-ca", "verify-full"];
const UNVERIFIED = ["disable", "allow", "prefer"];

/** The parameters of libpq that the driver does not know, taken out of the URL; verification is always the full one. */
function readTls(text: string, reader: Reader): { url: string; tls: PostgresPlace["tls"] } {
  const [place = "", query = ""] = text.split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  const [mode, file] = [parameters.get("sslmode") ?? "", parameters.get("sslrootcert") ?? undefined];
  if (file === undefined && !VERIFIED.includes(mode)) return { url: text, tls: undefined };
  if (file !== undefined && UNVERIFIED.includes(mode)) {
    reader.problem("store.postgres", `has sslrootcert beside sslmode=${mode}: use sslmode=verify-full`);
  }
  parameters.delete("sslmode");
  parameters.delete("sslrootcert");
  const rest = parameters.toString();
  const url = rest === "" ? place : `${place}?${rest}`;
  if (file === undefined || file === "system") return { url, tls: {} };
  reader.readAnchors("store.postgres.sslrootcert", { file });
  return { url, tls: defined<{ ca?: string }>({ ca: reader.readText("store.postgres.sslrootcert", file) }) };
}

/** As the driver reads it: several hosts may stand in it, of which this has the first, and each part is decoded. */
function parseDatabaseUrl(text: string): URL | undefined {
  const [, head = "", tail = ""] =
    /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?[^,/?]*)(?:,[^/?]*)?(.*)$/s.exec(text) ?? [];
  try {
    const url = new URL(head + tail);
    for (const part of [url.username, url.password]) decodeURIComponent(part);
    return url;
  } catch {
    return undefined;
  }
}
