/** What lies outside of the configuration: the store with its keys, the documents of others, the witness. */
import { accessSync, constants, existsSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { clock } from "../../adapters/clock.ts";
import { type EncryptionKeys, encryptionKeysOf } from "../../adapters/crypto/encryption-keys.ts";
import { checkKeys, sealAnew } from "../../adapters/crypto/seal.ts";
import { openCustody } from "../../adapters/remote/key-service.ts";
import { lookAtKeySet } from "../../adapters/remote/key-sets.ts";
import { lookAtBundle } from "../../adapters/remote/trust-bundles.ts";
import { type ClockState, judgeClock, measureClock } from "../../adapters/store/clock-difference.ts";
import { DatabaseTooNew } from "../../adapters/store/migrations.ts";
import { openUnchangedStore } from "../../adapters/store/open.ts";
import { describeReplication } from "../../adapters/store/replication.ts";
import {
  type Holder,
  type KeyRow,
  NoTables,
  type Store,
  StoreMisplaced,
} from "../../adapters/store/store.ts";
import { LOG_END } from "../../audit/event.ts";
import type { Config } from "../../config/config.ts";
import { StoreUnavailable } from "../../ports.ts";
import type { Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Bundle } from "../../spec/spiffe/bundle.ts";
import type { Finding, Level } from "./finding.ts";

/** This is no error, because the check comes before the first start. */
const NO_TABLES =
  "the database has no tables of this server yet: the first start makes them; if it is not new, correct `store`";

/** Looks at the store, and makes and changes nothing there. */
export async function storeOf({ fixed, settings }: Config): Promise<readonly Finding[]> {
  const { store: place, audit } = fixed;
  const encryptionKeys = encryptionKeysOf(fixed.keys);
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
      const keys = await checkKeys(rows, openCustody(encryptionKeys, fixed.keys.service)).then(
        (): Finding => ({
          level: "ok",
          where: "keys.encryptionKey",
          says: `opens the ${rows.length} signing keys of the store`,
        }),
        // The text may begin with the path already, which is told once.
        ({ message }: Error): Finding => ({
          level: "error",
          where: "keys.encryptionKey",
          says: message.replace(/^keys\.encryptionKey /, ""),
        }),
      );
      const other = keys.level === "ok" ? await otherKeyOf(rows, encryptionKeys) : [];
      const instance = await instanceOf(store, audit.instance);
      const role = await roleOf(store, where);
      return [
        ok,
        ...role,
        ...(await replicationOf(store, where)),
        keys,
        ...other,
        instance,
        ...(await clockOf(store, where, audit.instance, settings)),
      ];
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
    if (fault instanceof NoTables) return [{ level: "warning", where, says: NO_TABLES }, unseen];
    const level = fault instanceof StoreMisplaced ? "error" : "unreachable";
    return [{ level, where, says: fault.message }, unseen];
  }
}

/** What the role may do that no server does; without the rights that one needs, the store would not have opened. */
async function roleOf(store: Store, where: string): Promise<readonly Finding[]> {
  if (store.role === undefined) return [];
  const { role, isSuperuser, isOwner, revokes } = await store.role();
  if (isSuperuser) {
    const says = `${role} is a superuser, and may change every database of this server: serve by a role of its own`;
    return [{ level: "warning", where, says }];
  }
  if (isOwner) {
    const says = `${role} owns the tables, so that a start brings them up to date; it may drop them as well, and one that serves may have less`;
    return [{ level: "ok", where, says }];
  }
  const says =
    revokes.length === 0
      ? `${role} has the rights that a server needs, and no others`
      : `${role} has the rights that a server needs, and more: ${revokes.join("; ")}`;
  return [{ level: "ok", where, says }];
}

/** STORE-D-22: what a failover of this database keeps. */
async function replicationOf(store: Store, where: string): Promise<readonly Finding[]> {
  const found = await store.replication?.();
  if (found === undefined) return [];
  const { isWarning, says } = describeReplication(found);
  return [{ level: isWarning ? "warning" : "ok", where, says }];
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

/** Beside a server that runs, a name in use is right; before a start it is wrong. */
async function instanceOf({ log, names }: Store, name: string): Promise<Finding> {
  const where = "audit.instance";
  const head = await log.head(name);
  const [last] = head === undefined ? [] : await log.read({ log: name, afterSeq: head.seq - 1, limit: 1 });
  if (last?.type === LOG_END) {
    const says = `${name} was retired, and its log has ended: give this instance another name`;
    return { level: "error", where, says };
  }
  const holder = await names.holder(name);
  if (holder !== undefined && !isGone(holder)) {
    const since = new Date(holder.sinceMs).toISOString();
    const says = `${name} is in use by process ${holder.pid} on ${holder.host} since ${since}: a second process with this name is refused`;
    return { level: "ok", where, says };
  }
  const says =
    head === undefined
      ? `${name} begins a log of its own`
      : `${name} has a log of ${head.seq + 1} events in the store, and no process uses the name`;
  return { level: "ok", where, says };
}

/** Whether the process of this machine has ended; about another machine nothing can be said here. */
function isGone({ host, pid }: Holder): boolean {
  if (host !== hostname()) return false;
  try {
    // Signal 0 is not sent: it asks whether the process is there.
    process.kill(pid, 0);
    return false;
  } catch (fault) {
    return fault instanceof Error && "code" in fault && fault.code === "ESRCH";
  }
}

/** By how much the clock of this machine differs from the database's; SQLite has no clock of its own. */
async function clockOf(
  store: Store,
  where: string,
  instance: string,
  { clockSkewSeconds }: Settings,
): Promise<readonly Finding[]> {
  const measured = await measureClock(store, clock);
  if (measured === undefined) return [];
  const seconds = (Math.abs(measured.differenceMs) / 1000).toFixed(1);
  const says = `the clock of this machine is ${seconds} s ${measured.differenceMs > 0 ? "ahead of" : "behind"} the database's`;
  const others = (await store.names.clocks?.())?.filter(({ name }) => name !== instance) ?? [];
  return [{ where, ...CLOCK_FINDINGS[judgeClock(measured, hostname(), others, clockSkewSeconds)](says) }];
}

const CLOCK_FINDINGS: Readonly<Record<ClockState, (says: string) => Omit<Finding, "where">>> = {
  agrees: (says) => ({ level: "ok", says }),
  database_differs: (says) => ({
    level: "warning",
    says: `${says}, and agrees with those of all instances that run: correct the time service of the database`,
  }),
  differs: (says) => ({
    level: "error",
    says: `${says}, so that a server that starts does not become ready: correct the time service`,
  }),
};

/** The file is missing, and the first start makes it if it may write the folder. */
function missingFile(file: string): Finding {
  const where = "store.sqlite";
  const folder = dirname(file);
  if (!existsSync(folder)) {
    return {
      level: "error",
      where,
      says: `the folder ${folder} does not exist: make it, and let the server write to it`,
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

/** Fetches each document once, all at the same time. */
export async function sourcesOf({
  trustDomains,
  trustedIssuers,
  clients,
}: Settings): Promise<readonly Finding[]> {
  const bundles = [...trustDomains].map(async ([name, { bundle }]) =>
    finding(
      `trustDomains.${name}.bundle`,
      "file" in bundle,
      await lookAtBundle(bundle, clock),
      describeBundle,
    ),
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

const describeBundle = ({ jwtKeys, x509Authorities }: Bundle): Described =>
  jwtKeys.length + x509Authorities.length === 0
    ? { warning: `has no keys, so that none of its workloads can prove itself: ${UNLESS_REVOKED}` }
    : `has ${jwtKeys.length} JWT keys and ${x509Authorities.length} X.509 authorities`;

const countKeys = ({ length }: readonly unknown[]): Described =>
  length === 0
    ? { warning: `has no keys, so that nothing it signed is accepted: ${UNLESS_REVOKED}` }
    : `has ${length} keys`;

const UNLESS_REVOKED = "fill it, unless everything is to be revoked";

type Described = string | { warning: string };

function finding<T>(
  where: string,
  isFile: boolean,
  looked: Result<T, string>,
  describe: (value: T) => Described,
): Finding {
  if (looked.ok) {
    const described = describe(looked.value);
    if (typeof described === "object") return { level: "warning", where, says: described.warning };
    return { level: "ok", where, says: described };
  }
  const level: Level = isFile ? "error" : "unreachable";
  const remedy = isFile ? "correct the file or its path" : "correct the URL, its ca or its privateNetworks";
  return { level, where, says: `cannot be used (${looked.error}): ${remedy}` };
}

/** Looks at what the start opens besides the store and the documents. */
export function placesOf({ fixed }: Config): readonly Finding[] {
  const { witness } = fixed.audit;
  const found: Finding[] = [];
  if (typeof witness === "object" && "file" in witness) {
    const path = existsSync(witness.file) ? witness.file : dirname(witness.file);
    const says = isWritable(path) ? `${path} can be written` : `${path} cannot be written: change its mode`;
    found.push({ level: isWritable(path) ? "ok" : "error", where: "audit.witness", says });
  }
  return found;
}

/** Looks at the providers at which users sign in. Only the first sign-in shows whether one knows this client. */
export async function providersOf({ signIn }: Settings): Promise<readonly Finding[]> {
  if (signIn === undefined) return [];
  const { lookAtProvider } = await import("../../people/door.ts");
  const providers = [...signIn.providers].map(async ([name, provider]) =>
    finding(`signIn.providers.${name}`, false, await lookAtProvider(provider), (metadata) => {
      const { tokenEndpoint, introspectionEndpoint } = metadata;
      // Nothing would be asked then, and users would have to sign in again.
      if (provider.recheck === "introspection" && introspectionEndpoint === undefined) {
        const says = `its metadata name no introspection_endpoint, which "recheck": "introspection" asks about users: choose "refresh" or "visit"`;
        return { warning: says };
      }
      return `answers, and takes codes at ${tokenEndpoint}; whether it knows this client is not checked`;
    }),
  );
  return Promise.all(providers);
}
