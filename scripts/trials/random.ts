/** The tests of random input and of races at the stores, with many times the rounds that the suite has. */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");

export async function runRandom(times: number): Promise<readonly string[]> {
  const files = globSync("test/**/*.test.ts", { cwd: ROOT }).filter((file) =>
    /support\/rounds\.ts"|\btest(?:Contracts|Contested|Store)\(/.test(readFileSync(join(ROOT, file), "utf8")),
  );
  const env = { ...process.env, MANDATE_TEST_TIMES: String(times) };
  const options = ["--disable-warning=ExperimentalWarning", "--test", "--test-reporter=tap"];
  const { stdout } = await promisify(execFile)(process.execPath, [...options, ...files.sort()], {
    cwd: ROOT,
    env,
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  const [, passed = "none"] = /^# pass (\d+)$/m.exec(stdout) ?? [];
  return [`${files.length} files, ${times} times the rounds of the suite: ${passed} tests passed`];
}
