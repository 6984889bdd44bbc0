/** Reads the files, secrets and certificates that the configuration names; collects every problem with its path. */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createSecureContext } from "node:tls";
import type * as v from "valibot";
import { defined, err, ok, type Result } from "../result.ts";
import { isLoopbackOnly, opensLoopback } from "../settings/outbound.ts";
import type { Reach, RemoteDocument } from "../settings/settings.ts";
import { decodeUtf8 } from "../spec/rfc8259.ts";
import { certificatesIn, describeContent, describeEncoding, describeUnopened } from "./file-contents.ts";
import type { remote, secret } from "./values.ts";
import { fileDigest } from "./watched.ts";

type File = { file: string };
type RemoteFile = v.InferOutput<typeof remote>;
type ReachFile = Omit<RemoteFile, "url">;

const LOOPBACK_BESIDE =
  "opens loopback beside other addresses: if that is meant, name it by itself, such as 127.0.0.1/32";

const opensLoopbackBeside = (network: string): boolean => opensLoopback(network) && !isLoopbackOnly(network);

/** File names are relative to `folder`. The production profile allows no inline secrets. */
export function makeReader(folder: string, production: boolean): Reader {
  return new ConfigReader(folder, production);
}

/** Its functions are fields, because callers take them out of it, as in `const { problem } = reader`. */
class ConfigReader {
  readonly #folder: string;
  readonly #production: boolean;
  readonly problems: string[] = [];
  readonly warnings: string[] = [];
  /** What was read, apart from what was only looked into. */
  readonly files = new Map<string, string>();

  constructor(folder: string, production: boolean) {
    this.#folder = folder;
    this.#production = production;
  }

  readonly problem = (path: string, text: string): undefined => {
    this.problems.push(`${path}: ${text}`);
  };

  /** A problem in the production profile, which the development profile warns about. */
  readonly weakness = (path: string, text: string): void => {
    const found = this.#production ? this.problems : this.warnings;
    found.push(`${path}: ${text}`);
  };

  /** A warning that the production profile alone gives. */
  readonly advice = (path: string, text: string): void => {
    if (this.#production) this.warnings.push(`${path}: ${text}`);
  };

  readonly locate = (name: string): string => resolve(this.#folder, name);

  readonly readText = (path: string, name: string): string | undefined => {
    const bytes = this.readBytes(path, name);
    const content = bytes && textOf(name, bytes);
    return content?.ok === false ? this.problem(path, content.error) : content?.value;
  };

  readonly readBytes = (path: string, name: string): Uint8Array | undefined => {
    this.files.set(this.locate(name), "");
    const bytes = this.#bytesOf(name);
    if (!bytes.ok) return this.problem(path, bytes.error);
    this.files.set(this.locate(name), fileDigest(bytes.value));
    return bytes.value;
  };

  /** The content, or why it cannot be read, which is no problem here; undefined where no file is opened. */
  readonly peek = (name: string): Result<string, string> | undefined => {
    const bytes = this.#bytesOf(name);
    return bytes.ok ? textOf(name, bytes.value) : bytes;
  };

  readonly readEnv = (path: string, { env }: { env: string }): string | undefined =>
    process.env[env] ?? this.problem(`${path}.env`, `${env} is not set in the environment`);

  readonly readSecret = (path: string, from: v.InferOutput<typeof secret>): string | undefined => {
    if (typeof from === "string") {
      if (!this.#production) return from;
      return this.problem(
        path,
        'is inline, which the production profile refuses: use { "file": … } or { "env": … }',
      );
    }
    const content = "file" in from ? this.readText(`${path}.file`, from.file) : this.readEnv(path, from);
    if (content === undefined) return undefined;
    // A file written by an editor or by `echo` ends with a line break.
    const value = content.replace(/\r?\n$/, "");
    return value === "" ? this.problem(path, "is empty") : value;
  };

  /** A URL of the operator: in production it may lead to loopback where a network says that and nothing else. */
  readonly readRemote = (path: string, { url, ...from }: RemoteFile): RemoteDocument => ({
    url,
    ...this.#readReach(path, from, opensLoopbackBeside, LOOPBACK_BESIDE),
  });

  /** CIMD-8.6-3: in production a URL of a client never leads to this machine, whatever listens there. */
  readonly readSuppliedReach = (path: string, from: ReachFile): Reach =>
    this.#readReach(path, from, opensLoopback, "opens loopback, which only the development profile allows");

  readonly readListener = <L extends { tls: { key: File; cert: File } }>(path: string, from: L) => {
    const { tls, ...rest } = from;
    const key = this.#readPem(`${path}.tls.key.file`, tls.key.file, "a private key", createPrivateKey);
    const cert = this.#readCertificate(`${path}.tls.cert`, tls.cert);
    if (key !== undefined && cert !== undefined) {
      if (!cert.parsed.checkPrivateKey(key.parsed)) {
        this.problem(
          `${path}.tls.key`,
          // CONF-D-22
          isOfLaterCertificate(cert.pem, key.parsed)
            ? "is that of a certificate further down in tls.cert, whose first one has to be that of this server: turn the order of the file around"
            : "is not the private key of the certificate in tls.cert: name the two that belong together",
        );
      } else if (!servesTls(key.pem, cert.pem)) {
        this.problem(`${path}.tls.cert`, "is too weak for TLS, or what follows the certificate is damaged");
      }
      // The operator is only warned, because a restart would be no worse than serving on with it.
      if (cert.parsed.validToDate.getTime() <= Date.now()) {
        this.warnings.push(`${path}.tls.cert: ended on ${cert.parsed.validToDate.toISOString()}: renew it`);
      }
    }
    return { ...rest, key: key?.pem ?? "", cert: cert?.pem ?? "" };
  };

  /** Every certificate of a file, as DER. */
  readonly readAnchors = (path: string, { file }: File): readonly Uint8Array[] => {
    const text = this.readText(`${path}.file`, file);
    if (text === undefined) return [];
    const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    try {
      if (blocks.length === 0) throw new Error("none");
      return blocks.map((pem) => new X509Certificate(pem).raw);
    } catch {
      this.problem(
        `${path}.file`,
        `${file} has no certificates in PEM${describeContent(text, "certificates")}`,
      );
      return [];
    }
  };

  #bytesOf(name: string): Result<Uint8Array, string> {
    try {
      return ok(readFileSync(this.locate(name)));
    } catch (fault) {
      return err(`${name} cannot be read: ${describeUnopened(fault)}`);
    }
  }

  #readPem<T>(path: string, name: string, what: string, parse: (pem: string) => T) {
    const pem = this.readText(path, name);
    if (pem === undefined) return undefined;
    try {
      return { pem, parsed: parse(pem) };
    } catch {
      const wanted = `${what} in PEM`;
      return this.problem(path, `${name} is not ${wanted}${describeContent(pem, wanted)}`);
    }
  }

  #readCertificate(path: string, { file }: File) {
    return this.#readPem(`${path}.file`, file, "a certificate", (pem) => new X509Certificate(pem));
  }

  #readReach(
    path: string,
    { ca, privateNetworks }: ReachFile,
    isRefused: (network: string) => boolean,
    why: string,
  ): Reach {
    if (this.#production && privateNetworks.some(isRefused)) this.problem(`${path}.privateNetworks`, why);
    const authority = ca && this.#readCertificate(`${path}.ca`, ca);
    return defined({ privateNetworks, ca: authority?.pem });
  }
}

function textOf(name: string, bytes: Uint8Array): Result<string, string> {
  const content = decodeUtf8(bytes);
  return content.ok ? content : err(`${name} ${describeEncoding(bytes)}`);
}

/** Whether the file has the certificate of this key, and another one before it. */
function isOfLaterCertificate(cert: string, key: KeyObject): boolean {
  return certificatesIn(cert)
    .slice(1)
    .some((one) => one.checkPrivateKey(key));
}

/** The platform refuses short keys, old hashes, and a chain that it cannot read. */
function servesTls(key: string, cert: string): boolean {
  try {
    createSecureContext({ key, cert });
    return true;
  } catch {
    return false;
  }
}

/** The reader as its callers see it, without its folder and its profile. */
export type Reader = Pick<ConfigReader, keyof ConfigReader>;

/** This stands in place of authorities that were not read: no certificate is issued by it. */
const UNREAD: readonly Uint8Array[] = [new Uint8Array()];

/** A reader that opens no file and reads no secret, and reports none as missing. */
export function makeBlindReader(): Reader {
  const problems: string[] = [];
  return {
    problems,
    warnings: [],
    files: new Map(),
    problem: (path, text) => void problems.push(`${path}: ${text}`),
    weakness: () => undefined,
    advice: () => undefined,
    locate: (name) => name,
    readText: () => undefined,
    readBytes: () => undefined,
    peek: () => undefined,
    readEnv: () => undefined,
    readSecret: () => undefined,
    readRemote: (_, { url, privateNetworks }) => ({ url, privateNetworks }),
    readSuppliedReach: (_, { privateNetworks }) => ({ privateNetworks }),
    readListener: (_, { tls: __, ...rest }) => ({ ...rest, key: "", cert: "" }),
    readAnchors: () => UNREAD,
  };
}
