/** `npm run policy -- COMMAND`: checks a policy before it is in force. It opens no store, secret or key. */
import { POLICY_USAGE, parsePolicyCommand } from "../src/cli/policy/command-line.ts";

const USAGE_EXIT = 2;

const command = parsePolicyCommand(process.argv.slice(2));
if (command.ok) {
  const print = (line: string): void => console.log(line);
  const printError = (line: string): void => console.error(line);
  process.exitCode = await command.value({ print, printError });
} else {
  console.error(`${command.error}\n\n${POLICY_USAGE}`);
  process.exitCode = USAGE_EXIT;
}
