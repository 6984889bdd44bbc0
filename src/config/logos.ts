/** The logos of the server and of agents: files of the operator, which are checked and then served by this server itself. */
import { LOGO_BYTES_MAX, LOGO_PIXELS_MAX } from "../limits/people.ts";
import { err, ok, type Result } from "../result.ts";
import { type PngFailure, parsePng } from "../spec/png.ts";
import type { Reader } from "./reader.ts";
import { fileDigest } from "./watched.ts";

export type LogoReader = {
  /** Those that were read, by their paths at this server. */
  logos: Map<string, Uint8Array>;
  /** The path of the logo that a setting names. */
  read(at: string, from: { file: string } | undefined): string | undefined;
};

/** PAGE-D-41: the path has the digest of the content, so that a browser may keep what it has, and a new logo is seen at once. */
export function makeLogoReader(issuer: string, reader: Reader): LogoReader {
  const logos = new Map<string, Uint8Array>();
  const base = new URL(issuer).pathname.replace(/\/$/, "");
  return {
    logos,
    read(at, from) {
      const bytes = from && reader.readBytes(`${at}.file`, from.file);
      if (bytes === undefined) return undefined;
      const checked = checkLogo(bytes);
      if (!checked.ok) return reader.problem(`${at}.file`, `${from?.file} ${checked.error}`);
      const path = `${base}/logo/${fileDigest(bytes)}`;
      logos.set(path, bytes);
      return path;
    },
  };
}

const NO_LOGO: Record<PngFailure, string> = {
  not_png: "export the logo as PNG, and name that file",
  png_damaged: "is damaged, or something follows its end: export it again",
  png_animated: "moves, and nothing may move beside what people read: save one picture of it",
};

/** By the first bytes. */
const OTHERS: readonly (readonly [is: RegExp, what: string])[] = [
  [/^$/, "empty"],
  [/^\s*</, "an SVG, or a page"],
  [/^\xff\xd8\xff/, "a JPEG"],
  [/^GIF8/, "a GIF"],
  [/^RIFF/, "a WebP"],
];

/** PAGE-D-40: why a file is no logo, and what to do. */
function checkLogo(bytes: Uint8Array): Result<undefined, string> {
  const png = parsePng(bytes);
  if (!png.ok && png.error === "not_png") {
    const start = String.fromCharCode(...bytes.subarray(0, 64));
    const what = OTHERS.find(([is]) => is.test(start))?.[1];
    return err(`is no PNG picture${what === undefined ? "" : `, but ${what}`}: ${NO_LOGO.not_png}`);
  }
  if (bytes.length > LOGO_BYTES_MAX)
    return err(`has ${bytes.length} bytes, and at most ${LOGO_BYTES_MAX} are served: save it smaller`);
  if (!png.ok) return err(NO_LOGO[png.error]);
  const { width, height } = png.value;
  return Math.max(width, height) > LOGO_PIXELS_MAX
    ? err(`is ${width} by ${height} pixels, and each side may have ${LOGO_PIXELS_MAX}: scale it down`)
    : ok(undefined);
}
