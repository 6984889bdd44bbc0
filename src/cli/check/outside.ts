/** What lies outside of the configuration: the store with its keys, the documents of others, the witness. */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { checkKeys, sealAnew } from "../../adapters/crypto/seal.ts";
import type { EncryptionKeys } from "../../adapters/crypto/system.ts";
import { clock, encryptionKeysOf } from "../../adapters/crypto/system.ts";
import { openCustody } from "../../adapters/remote/key-service.ts";
import { lookAtBundle, lookAtKeySet } from "../../adapters/remote/key-sources.ts";
import { openUnchangedStore } from "../../adapters/store/open.ts";
import type { KeyRow, Store } from "../../adapters/store/store.ts";
import { DatabaseTooNew } from "../../adapters/store/store.ts";
import { LOG_END } from "../../audit/event.ts";
import type { Config } from "../../config/config.ts";
import { StoreUnavailable } from "../../ports.ts";
import type { Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Finding, Level } from "./finding.ts";

/** Makes and changes nothing. */
export async function storeOf({ fixed }: Config): Promise<readonly Finding[]> {
  const { store: place, audit } = fixed;
  const encryptionKeys = encryptionKeysOf(fixed);
  const where = "sqlite" in place ? "store.sqlite" : "store.postgres";
  if ("sqlite" in place && !existsSync(place.sqlite)) return [missingFile(place.sqlite)];
  try {
    const store = await openUnchangedStore(place);
    try {
      const ok: Finding = {
        level: "ok",
        where,
        says: "the store answers, and has the tables of this version",
      };
      const rows = await store.keys.list();
      const keys = await checkKeys(rows, openCustody(encryptionKeys, fixed.keyService)).then(
        (): Finding => ({
          level: "ok",
          where: "keys.encryptionKey",
          says: `opens the ${rows.length} signing keys of the store`,
        }),
        // A text that begins with the path already is not told twice.
        ({ message }: Error): Finding => ({
          level: "error",
          where: "keys.encryptionKey",
          says: message.replace(/^keys\.encryptionKey /, ""),
        }),
      );
      const other = keys.level === "ok" ? await otherKeyOf(rows, encryptionKeys) : [];
      return [ok, keys, ...other, await instanceOf(store, audit.instance)];
    } finally {
      await store.close();
    }
  } catch (fault) {
    if (!(fault instanceof StoreUnavailable || fault instanceof DatabaseTooNew)) throw fault;
    const unseen: Finding = {
      level: "unseen",
      where: "keys.encryptionKey",
      says: "whether it opens the signing keys of the store",
    };
    return [{ level: "unreachable", where, says: fault.message }, unseen];
  }
}

/** Whether a second key-encryption key can be left out. */
async function otherKeyOf(
  rows: readonly KeyRow[],
  encryptionKeys: EncryptionKeys,
): Promise<readonly Finding[]> {
  if (encryptionKeys.length === 1) return [];
  const where = "keys.otherEncryptionKey";
  const anew = await Promise.all(rows.map((row) => sealAnew(row, encryptionKeys)));
  const count = anew.filter((one) => one !== undefined).length;
  const remedy = 'run "mandate keys reencrypt" when every instance has both keys';
  return count === 0
    ? [{ level: "ok", where, says: "is needed by no signing key in the store" }]
    : [{ level: "warning", where, says: `is needed by ${count} signing keys in the store: ${remedy}` }];
}

/** Whether another process has the name now is known to the start alone. */
async function instanceOf({ log }: Store, name: string): Promise<Finding> {
  const where = "audit.instance";
  const head = await log.head(name);
  if (head === undefined) return { level: "ok", where, says: `${name} begins a log of its own` };
  const [last] = await log.read({ log: name, afterSeq: head.seq - 1, limit: 1 });
  return last?.type === LOG_END
    ? {
        level: "error",
        where,
        says: `${name} was retired, and its log has ended: give this instance another name`,
      }
    : { level: "ok", where, says: `${name} has a log of ${head.seq + 1} events in the store` };
}

/** The first start makes the file, if it may. */
function missingFile(file: string): Finding {
  const where = "store.sqlite";
  const folder = dirname(file);
  if (!existsSync(folder)) {
    return {
      level: "error",
      where,
      says: `the folder ${folder} does not exist: make it, writable for the server`,
    };
  }
  if (!isWritable(folder)) {
    return {
      level: "error",
      where,
      says: `the folder ${folder} cannot be written: change its owner or its mode`,
    };
  }
  return { level: "ok", where, says: `there is no database yet: the first start makes ${file}` };
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Each document once, all at the same time. */
export async function sourcesOf({
  trustDomains,
  trustedIssuers,
  clients,
}: Settings): Promise<readonly Finding[]> {
  const bundles = [...trustDomains].map(async ([name, { bundle }]) =>
    finding(`trustDomains.${name}.bundle`, "file" in bundle, await lookAtBundle(bundle, clock), (one) => {
      const { jwtKeys, x509Authorities } = one;
      return `has ${jwtKeys.length} JWT keys and ${x509Authorities.length} X.509 authorities`;
    }),
  );
  const issuers = [...trustedIssuers].map(async ([name, { keys }]) =>
    finding(`trustedIssuers.${name}.keys`, "file" in keys, await lookAtKeySet(keys), countKeys),
  );
  const published = [...clients].flatMap(([id, { auth }]) =>
    "jwksUri" in auth ? [{ where: `clients.${id}.jwksUri`, place: auth.jwksUri }] : [],
  );
  const ofClients = published.map(async ({ where, place }) =>
    finding(where, false, await lookAtKeySet(place), countKeys),
  );
  return Promise.all([...bundles, ...issuers, ...ofClients]);
}

const countKeys = (keys: readonly unknown[]): string => `has ${keys.length} keys`;

function finding<T>(
  where: string,
  isFile: boolean,
  looked: Result<T, string>,
  describe: (value: T) => string,
): Finding {
  if (looked.ok) return { level: "ok", where, says: describe(looked.value) };
  const level: Level = isFile ? "error" : "unreachable";
  const remedy = isFile ? "correct the file or its path" : "correct the URL, its ca or its privateNetworks";
  return { level, where, says: `cannot be used (${looked.error}): ${remedy}` };
}

/** What the start opens beside that. */
export function placesOf({ fixed, settings }: Config): readonly Finding[] {
  const { witness } = fixed.audit;
  const found: Finding[] = [];
  if (typeof witness === "object" && "file" in witness) {
    const path = existsSync(witness.file) ? witness.file : dirname(witness.file);
    const says = isWritable(path) ? `${path} can be written` : `${path} cannot be written: change its mode`;
    found.push({ level: isWritable(path) ? "ok" : "error", where: "audit.witness", says });
  }
  if (typeof witness === "object" && "sink" in witness) {
    found.push({ level: "unseen", where: "audit.witness", says: "whether it takes checkpoints" });
  }
  if (fixed.keyService !== undefined) {
    found.push({ level: "unseen", where: "keys.service", says: "whether it makes keys and signs" });
  }
  for (const name of settings.signIn?.providers.keys() ?? []) {
    const says = "whether the provider knows this client";
    found.push({ level: "unseen", where: `signIn.providers.${name}`, says });
  }
  const listeners = Object.entries({ ...fixed }).flatMap(([name, one]) =>
    typeof one === "object" && "port" in one ? [`${name}.port`] : [],
  );
  const says = "whether it is free: a server that runs already holds it";
  return [...found, ...listeners.map((where): Finding => ({ level: "unseen", where, says }))];
}
