/**
 * The sources and the four packages as one module, by the bundler. It is not minified, and each module of it stands under
 * its path, so that what runs can be read, and compared between two releases.
 */
import { isBuiltin } from "node:module";
import { type Plugin, rolldown } from "rolldown";

/** `root` is the folder of the project; throws at everything of which the bundler warns. */
export async function bundle(root: string): Promise<string> {
  const build = await rolldown({
    input: "src/main.ts",
    cwd: root,
    platform: "node",
    plugins: [PLATFORM],
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
    const left = /^import .*$/m.exec(program.code)?.[0];
    if (left !== undefined) throw new Error(`the program begins with ${left}`);
    return inAscii(program.code);
  } finally {
    await build.close();
  }
}

/**
 * A module of the platform is loaded where the first module that needs it runs. An import would load all of them before
 * the first line, `mandate audit` would load TLS, and each would make every member that it has.
 */
const PLATFORM: Plugin = {
  name: "platform",
  transform: (code) =>
    code.replace(
      /^import (?!type )(?:(\w+)(?:, )?)?(?:\* as (\w+)|(\{[^}]*\}))? from (["'])([^"']+)\4;?$/gm,
      (whole, all?: string, star?: string, members?: string, _quote?: string, from = "") => {
        if (!isBuiltin(from)) return whole;
        const loaded = `process.getBuiltinModule("${from}")`;
        const some = members?.replaceAll(/\btype \w+(?: as \w+)?,? ?/g, "").replaceAll(" as ", ": ");
        return [all, star, some].map((name) => (name ? `const ${name} = ${loaded};` : "")).join(" ");
      },
    ),
};

/** The platform keeps other text in two bytes a character for as long as it runs. */
function inAscii(code: string): string {
  const raw = code.split("\n").find((line) => line.includes("String.raw") && /[^\0-\x7f]/.test(line));
  if (raw !== undefined) throw new Error(`an escape would change ${raw.trim()}`);
  return code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
