/**
 * The sources and the four packages as one module, by the bundler. It is not minified, and each module of it stands under
 * its path, so that what runs can be read, and compared between two releases.
 */
import { rolldown } from "rolldown";

/** `root` is the folder of the project; throws at everything of which the bundler warns. */
export async function bundle(root: string): Promise<string> {
  const build = await rolldown({
    input: "src/main.ts",
    cwd: root,
    platform: "node",
    onLog(_level, { code = "", message }) {
      // What one module loads late, another has loaded already.
      if (code !== "INEFFECTIVE_DYNAMIC_IMPORT") throw new Error(`the bundler says ${code}: ${message}`);
    },
  });
  try {
    // One file: what the sources load late is in it, and runs when it is asked for.
    const { output } = await build.generate({ format: "esm", codeSplitting: false, minify: false });
    const [program, ...others] = output;
    if (others.length > 0) throw new Error(`the bundler made ${others.length} further files`);
    return program.code;
  } finally {
    await build.close();
  }
}
