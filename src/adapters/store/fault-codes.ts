/** Describes the codes of databases and of the platform for the operator, who can do something about these. */

import { StoreUnavailable } from "../../ports.ts";

const OTHER_AUTHORITY =
  "the certificate of the server is of no authority that is known here: name a file with it as sslrootcert in `store.postgres`";

const CODES: Readonly<Record<string, string>> = {
  // PostgreSQL
  "28P01": "the user or the password of `store.postgres` is wrong, or the password has expired there",
  "28000": "the user of `store.postgres` may not connect: see pg_hba.conf of the server",
  "3D000": "there is no database of this name: create it, or correct `store.postgres`",
  "42501": 'the user of `store.postgres` may not do this: "mandate check" names the rights that it lacks',
  "40001": "others changed the same rows again and again: see the load of the database",
  "53300":
    "the server, its database or this user has no place for more connections: lower `store.connections`, or raise the limit there",
  "53100": "the disk of the database is full: free or add space there",
  "53200": "the database has no memory left: give it more, or fewer connections and a lower work_mem",
  "55P03":
    "another session holds a lock on these rows: find it in pg_locks and pg_stat_activity of the database",
  "57014":
    "the statement took too long, or an administrator cancelled it: see locks and load in pg_stat_activity of the database",
  "57P01": "an administrator ended the session, or the server stops: see its log",
  "57P02": "a process of the server crashed, and all sessions ended: see its log",
  "55000":
    "the database is in no state for this, or takes no connections (datallowconn): see its settings and the log of the server",
  "57P03": "the server is starting or stopping",
  "58030": "the database cannot read or write its files: see its log and its disk",
  "25006":
    "the server only reads: `store.postgres` leads to a standby, or to a proxy that sends reads to one, or its database or user has default_transaction_read_only",
  "26000": "its session is shared with other clients: set the mode of the pooler to session",
  "42P05": "its session is shared with other clients: set the mode of the pooler to session",
  "42704": "the server does not know a parameter of `store.postgres`",
  // The way there
  NO_TLS: "the server offers no TLS, or something between it and here takes it away",
  AUTHENTICATION: "the server asks for a proof that is not known here: set scram-sha-256 in its pg_hba.conf",
  PROTOCOL: "what answers is no PostgreSQL, or something on the way changes what it says",
  ECONNREFUSED: "nothing listens at this host and port: start the database, or correct `store.postgres`",
  ENOTFOUND: "there is no such host: correct `store.postgres`",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  ETIMEDOUT: "the host does not answer: see its address and the firewalls on the way",
  ECONNRESET: "the server hung up",
  EHOSTUNREACH: "no way leads to this host: see its address and the routes and firewalls on the way",
  ENETUNREACH: "no way leads to this host: see its address and the routes and firewalls on the way",
  SELF_SIGNED_CERT_IN_CHAIN: OTHER_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: OTHER_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: OTHER_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: OTHER_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: OTHER_AUTHORITY,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "the certificate of the server is for another host: write the host in `store.postgres` as the certificate does",
  CERT_HAS_EXPIRED: "the certificate of the server has ended: renew it there",
  CERT_NOT_YET_VALID:
    "the certificate of the server is not valid yet: see its dates, and the clock of this machine",
  // Files
  ENOENT: "its folder does not exist: make it",
  EACCES: "this user may not write it: change its owner or mode",
  EISDIR: "it is a folder",
  EROFS: "the file system only reads",
  ENOSPC: "the disk is full",
  ERR_ACCESS_DENIED: "it is outside of the folders of --allow-fs-write: move it, or add the flag for it",
  // SQLite
  7: "no memory is left",
  8: "this user may not write the file or its folder",
  10: "the disk failed",
  11: "the file is damaged: restore a backup",
  13: "the disk is full",
  14: "the file or its folder cannot be opened",
  26: "the file is not a database: correct `store.sqlite`",
};

/** Why a file cannot be written, in place of the platform's code. */
export const describeFileCode = (code: string): string => CODES[code] ?? `the system answers ${code}`;

/** The text that follows the code in a message; empty for a code that is not known. */
export function describeCode(code: string | number): string {
  const description = CODES[code];
  return description === undefined ? "" : `: ${description}`;
}

export const unavailable = (message: string, code: string | number): StoreUnavailable =>
  Object.assign(new StoreUnavailable(message), { code: String(code) });
