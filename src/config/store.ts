/** The `store` section: a file, or the connection URL of a PostgreSQL database and how its server is verified. */
import { basename, dirname, resolve } from "node:path";
import { STORE_CONNECTIONS_MAX, STORE_HOSTS_MAX } from "../limits/store.ts";
import { defined } from "../result.ts";
import type { DatabaseHost, DatabaseTls, StorePlace } from "../settings/settings.ts";
import { makeReader, type Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";
import { isLoopbackHost } from "./values.ts";

type Place = StorePlace & { startSeconds: number };
type PostgresPlace = Extract<Place, { postgres: string }>;

export function readStore(
  { store, profile }: Pick<ConfigFile, "store" | "profile">,
  folder: string,
  reader: Reader,
): Place {
  if ("sqlite" in store) return { ...store, sqlite: resolve(folder, store.sqlite) };
  const unread = { ...store, postgres: "" };
  const text = reader.readSecret("store.postgres", store.postgres);
  if (text === undefined) return unread;
  const texts = textsOf(text);
  const urls = texts.flatMap((one) => parseDatabaseUrl(one) ?? []);
  const [url] = urls;
  const isList = texts.length > 1;
  if (
    url === undefined ||
    urls.length < texts.length ||
    (isList && urls.some(({ hostname }) => hostname === ""))
  ) {
    // The text of the URL is left out, because it holds a password.
    reader.problem("store.postgres", "is not a connection URL (postgres://…)");
    return unread;
  }
  const parameters = new URLSearchParams(url.search);
  const names = [...parameters.keys()];
  for (const name of new Set(names.filter((one, index) => names.indexOf(one) < index)))
    reader.problem("store.postgres", `has the parameter ${name} several times`);
  refuseOtherServers(parameters, reader);
  const [socketFolder] = urls.flatMap((one) => readSocketFolder(one, parameters) ?? []);
  if (isList && socketFolder !== undefined)
    reader.problem(
      "store.postgres",
      "names a folder beside several hosts: name hosts alone, or the folder alone",
    );
  const hosts = urls.map(hostOf);
  const named = hosts.map(({ name, port }) => `${name}:${port}`);
  const twice = named.find((one, index) => named.indexOf(one) < index);
  if (twice !== undefined) reader.problem("store.postgres", `names ${twice} twice: name each server once`);
  if (hosts.some(({ port }) => port === 0))
    reader.problem("store.postgres", "names the port 0: name the one at which the server listens");
  if (urls.length > STORE_HOSTS_MAX)
    reader.problem("store.postgres", `names ${urls.length} hosts: name at most ${STORE_HOSTS_MAX}`);
  const tls = readTls(parameters, reader);
  const isFar = socketFolder === undefined && urls.some(({ hostname }) => isFarHost(hostname));
  if (tls?.mode !== "verified" && profile === "production" && isFar) {
    reader.warnings.push(
      "store.postgres: the server of the database is not verified, so another one could take its place and read everything: add sslmode=verify-full, and sslrootcert=FILE for a private authority",
    );
  }
  const rest = parameters.toString();
  const place = texts[0]?.split("?", 1)[0] ?? "";
  const postgres = (socketFolder === undefined ? place : atLocalhost(url)) + (rest && `?${rest}`);
  return defined<PostgresPlace>({ ...store, postgres, socketFolder, hosts: isList ? hosts : undefined, tls });
}

/** The place of a copy whose connection URL is in this file, read as `store.postgres` is, or what is wrong with it. */
export function readCopy(file: string): {
  place: PostgresPlace | undefined;
  problems: readonly string[];
  warnings: readonly string[];
} {
  const reader = makeReader(dirname(resolve(file)), true);
  const url = { file: basename(file) };
  const store = { postgres: url, connections: STORE_CONNECTIONS_MAX, startSeconds: 0 };
  const place = readStore({ store, profile: "production" }, "", reader);
  const [problems = [], warnings = []] = [reader.problems, reader.warnings].map((texts) =>
    texts.map((text) => text.replace(/^store\.postgres/, file)),
  );
  return { place: "postgres" in place && problems.length === 0 ? place : undefined, problems, warnings };
}

/** STORE-D-7: the URL with each host of its list alone; libpq gives each its own port. */
function textsOf(text: string): readonly string[] {
  const [, begin = "", list = text, end = ""] = /^([^:]*:\/\/(?:[^/?]*@)?)([^/?]*)(.*)$/s.exec(text) ?? [];
  return list.split(",").map((host) => begin + host + end);
}

const hostOf = ({ hostname, port }: URL): DatabaseHost => ({ name: hostname, port: Number(port || 5432) });

const isFarHost = (hostname: string): boolean =>
  hostname !== "" && !isLoopbackHost(hostname.replace(/^\[(.*)\]$/, "$1"));

/** As libpq names the folder of a Unix socket: the parameter `host`, or the host in percent-encoding. */
function readSocketFolder(url: URL, parameters: URLSearchParams): string | undefined {
  const folder = parameters.get("host") ?? decodeURIComponent(url.hostname);
  if (!folder.startsWith("/")) return undefined;
  parameters.delete("host");
  return folder;
}

/** The driver reads no URL whose host is a folder. */
function atLocalhost({ href }: URL): string {
  const url = new URL(href);
  Object.assign(url, { hostname: "localhost", search: "" });
  return url.href;
}

const MODES = new Map<string, DatabaseTls["mode"] | undefined>([
  ["disable", undefined],
  ["allow", "offered"],
  ["prefer", "offered"],
  ["require", "required"],
  ["verify-ca", "verified"],
  ["verify-full", "verified"],
]);

/** The parameters of libpq for TLS, taken out of `parameters`; verification is always the full one. */
function readTls(parameters: URLSearchParams, reader: Reader): DatabaseTls | undefined {
  const [given, file] = [parameters.get("sslmode") ?? undefined, parameters.get("sslrootcert") ?? undefined];
  for (const name of ["ssl", "sslnegotiation"]) {
    if (parameters.has(name))
      reader.problem("store.postgres", `has the parameter ${name}: use sslmode=verify-full`);
  }
  for (const name of ["sslmode", "sslrootcert", "ssl", "sslnegotiation"]) parameters.delete(name);
  if (given !== undefined && !MODES.has(given)) {
    reader.problem("store.postgres", `has sslmode=${given}: use one of ${[...MODES.keys()].join(", ")}`);
  }
  const mode = MODES.get(given ?? "disable");
  if (file === undefined) return mode && { mode };
  if (given !== undefined && (mode === undefined || mode === "offered")) {
    reader.problem("store.postgres", `has sslrootcert beside sslmode=${given}: use sslmode=verify-full`);
  }
  if (file === "system") return { mode: "verified" };
  reader.readAnchors("store.postgres.sslrootcert", { file });
  return defined<DatabaseTls>({
    mode: "verified",
    ca: reader.readText("store.postgres.sslrootcert", file),
  });
}

/** A server that does not write is never used, so that what asks for that one is met, and what asks for another is not. */
function refuseOtherServers(parameters: URLSearchParams, reader: Reader): void {
  const wanted = parameters.get("target_session_attrs");
  parameters.delete("target_session_attrs");
  if (wanted === null || wanted === "read-write" || wanted === "primary") return;
  reader.problem(
    "store.postgres",
    `has target_session_attrs=${wanted}: remove it: which server is used does not depend on it`,
  );
}

/** Each part is decoded, as the driver reads it. */
function parseDatabaseUrl(text: string): URL | undefined {
  try {
    const url = new URL(text);
    for (const part of [url.username, url.password]) decodeURIComponent(part);
    return url.protocol === "postgres:" || url.protocol === "postgresql:" ? url : undefined;
  } catch {
    return undefined;
  }
}
