/** Another revision of the server, as a copy of its sources in a temporary folder. */
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeFolder, ROOT } from "./stage.ts";

const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

export type Revision = { root: string; commit: string; remove(): void };

/** With the packages of this one, so it needs the same dependencies. Not a work tree, of which an abort would leave a part. */
export function checkOut(revision: string): Revision {
  const commit = git("rev-parse", "--short", `${revision}^{commit}`);
  const { folder, remove } = makeFolder();
  const [archive, root] = [join(folder, "sources.tar"), join(folder, "tree")];
  git("archive", `--output=${archive}`, commit);
  mkdirSync(root);
  execFileSync("tar", ["-xf", archive, "-C", root]);
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  return { root, commit, remove };
}
