/** What a release is made of, as CycloneDX 1.6: the packages at run time, with the digests that the lock file has. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

type Locked = { version: string; integrity: string; license: string; resolved?: string };

/** A package of the lock file that `npm ci` has installed. */
export type Package = Locked & { name: string };

/** The packages that `package.json` names as those at run time, sorted; throws at one with dependencies of its own. */
export function runtimePackages(root: string): readonly Package[] {
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), "utf8"));
  const { packages } = read("package-lock.json");
  return Object.keys(read("package.json").dependencies)
    .sort()
    .map((name) => {
      const { version, integrity, license, resolved, dependencies } = packages[`node_modules/${name}`];
      if (dependencies !== undefined) throw new Error(`${name} has dependencies of its own`);
      return { name, version, integrity, license, resolved };
    });
}

/** `sha256` is that of the one file, `madeAt` an instant in RFC 3339. */
export function sbom(
  packages: readonly Package[],
  { version, sha256, madeAt }: { version: string; sha256: string; madeAt: string },
): string {
  const purl = (name: string, at: string): string => `pkg:npm/${name}@${at}`;
  const refs = packages.map(({ name, version: at }) => purl(name, at));
  const whole = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidFrom([sha256, ...refs].join("\n"))}`,
    version: 1,
    metadata: {
      timestamp: madeAt,
      component: {
        "bom-ref": purl("mandate", version),
        type: "application",
        name: "mandate",
        version,
        purl: purl("mandate", version),
        hashes: [{ alg: "SHA-256", content: sha256 }],
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components: packages.map(({ name, version: at, integrity, license }) => ({
      "bom-ref": purl(name, at),
      type: "library",
      scope: "required",
      name,
      version: at,
      purl: purl(name, at),
      hashes: [{ alg: "SHA-512", content: sha512Of(integrity) }],
      licenses: [{ license: { id: license } }],
      externalReferences: [
        { type: "distribution", url: `https://registry.npmjs.org/${name}/-/${name}-${at}.tgz` },
      ],
    })),
    dependencies: [
      { ref: purl("mandate", version), dependsOn: refs },
      ...refs.map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

/** In hexadecimal. */
function sha512Of(integrity: string): string {
  const [, base64] = /^sha512-(\S+)$/.exec(integrity) ?? [];
  if (base64 === undefined) throw new Error(`the lock file has no SHA-512, but ${integrity}`);
  return Buffer.from(base64, "base64").toString("hex");
}

/** The same UUID (version 8, RFC 9562) for the same content, so that two releases of one commit are equal. */
function uuidFrom(content: string): string {
  const hex = createHash("sha256").update(content).digest("hex");
  const variant = ((Number.parseInt(hex[16] ?? "", 16) & 0x3) | 0x8).toString(16);
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
  ];
  return [...parts, hex.slice(20, 32)].join("-");
}
