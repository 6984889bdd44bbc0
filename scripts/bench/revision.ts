/** Another revision of the server, as a work tree in a temporary folder. */
import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeFolder, ROOT } from "./stage.ts";

const git = (...args: string[]): string => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

export type Revision = { root: string; commit: string; remove(): void };

/** With the packages of this one, so it needs the same dependencies. */
export function checkOut(revision: string): Revision {
  const commit = git("rev-parse", "--short", `${revision}^{commit}`);
  const { folder, remove } = makeFolder();
  const root = join(folder, "tree");
  git("worktree", "add", "--detach", "--quiet", root, commit);
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  return {
    root,
    commit,
    remove() {
      git("worktree", "remove", "--force", root);
      remove();
    },
  };
}
