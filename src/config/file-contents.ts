/** Why a file is not what a setting takes: what it is instead, and what to do about it. */
import { X509Certificate } from "node:crypto";

const AS_UTF8 = "save it as UTF-8 without a byte order mark";
const DER = "is in DER: convert it to PEM, or to JSON where a key set or bundle is expected";

/** By the first bytes, in hexadecimal. */
const ENCODINGS: readonly (readonly [start: RegExp, text: string])[] = [
  [/^efbbbf/, "begins with a byte order mark: save it without"],
  [/^(?:fffe|feff)/, `is in UTF-16: ${AS_UTF8}`],
  [/^30(?:8[0-4]|[0-7])/, DER],
];

export function describeEncoding(bytes: Uint8Array): string {
  const start = bytes.subarray(0, 3).toHex();
  return ENCODINGS.find(([begins]) => begins.test(start))?.[1] ?? `is not UTF-8: ${AS_UTF8}`;
}

const ANOTHER = "name the file that has it";

/** The first that fits; the remedy is for a setting that takes something else. */
const KINDS: readonly (readonly [is: RegExp, what: string, remedy: string])[] = [
  [/^\s*$/, "empty", "fill it"],
  [
    /-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m,
    "an encrypted private key",
    "decrypt it (openssl pkey -in FILE -out NEW), because no password is asked for",
  ],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----/, "a private key", ANOTHER],
  [
    /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----/,
    "the request for a certificate",
    "name the file that the authority sent back",
  ],
  [/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/, "a certificate", ANOTHER],
  [/-----BEGIN [A-Z ]*PUBLIC KEY-----/, "a public key in PEM", ANOTHER],
  [/^\s*[[{]/, "JSON", ANOTHER],
  [/^\s*</, "a web page or XML", ANOTHER],
  [/^(?:---|[\w$.-]+:(?:\s|$))/, "YAML", "write it as JSON"],
];

/** The rest of a message that says what the file should be, such as "a certificate in PEM". */
export function describeContent(text: string, wanted: string): string {
  const [, what, remedy] = KINDS.find(([is]) => is.test(text)) ?? [];
  if (what === undefined) return `: ${ANOTHER}`;
  if (what === "JSON" && !wanted.endsWith("PEM")) return "";
  if (wanted.startsWith(what)) return ": it is damaged: get it again";
  return `: it is ${what}: ${remedy}`;
}

const OWN_ENDS: readonly (readonly [has: RegExp, text: string])[] = [
  [/^\s*$/, "it is empty: fill it"],
  [/^(?:---|[\w$.-]+:(?:\s|$))/, "it is YAML: write it as JSON"],
  [/^\s*(?:\/\/|\/\*|#)/m, "JSON has no comments: remove them"],
  [/,\s*[}\]]/, "a comma stands before a closing bracket: remove it"],
];

/** The rest of a message that the configuration is no JSON. */
export function describeNotJson(text: string): string {
  const found = OWN_ENDS.find(([has]) => has.test(text));
  return found === undefined ? "" : `: ${found[1]}`;
}

/** The first name that an object of this JSON text has twice. */
export function repeatedName(text: string): string | undefined {
  const open: Set<string>[] = [];
  let last = "";
  // A text without an end is one token, so that none of it is looked at again.
  for (const [token] of text.matchAll(/[{}:]|"(?:[^"\\]|\\.)*"?/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (token !== ":") last = token;
    else {
      const name = String(JSON.parse(last));
      if (open.at(-1)?.has(name)) return name;
      open.at(-1)?.add(name);
    }
  }
  return undefined;
}

/** Why a file of the operator cannot be opened, in place of the platform's code. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder: correct its name, or make it",
  EACCES: "this user may not open it: change its owner or its mode",
  EPERM: "this user may not open it: change its owner or its mode",
  EISDIR: "it is a folder: name a file",
  ENOTDIR: "a part of its path is a file: correct its name",
  ELOOP: "it is a symbolic link to itself: correct the link",
  ENAMETOOLONG: "its name is too long: correct it",
  EEXIST: "it exists already, and is not overwritten: give another name",
  ENOSPC: "there is no space left for it: make room",
  EROFS: "its file system is read-only: give another place",
};

/** The rest of a message of the platform may quote a secret. */
export function describeUnopened(fault: unknown): string {
  const code = fault instanceof Error && "code" in fault ? String(fault.code) : "no code";
  if (code === "ERR_ACCESS_DENIED") {
    const flag = Object(fault).permission === "FileSystemWrite" ? "--allow-fs-write" : "--allow-fs-read";
    return `it is outside of the folders of ${flag}: move it, or add the flag for it`;
  }
  return FILE_FAULTS[code] ?? `the system answers ${code}: see its documentation`;
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** What cannot be read is left out: the platform takes the first certificate of an authority's file and ignores the rest. */
export const certificatesIn = (pem: string): readonly X509Certificate[] =>
  (pem.match(PEM) ?? []).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
