/** `npm run trials -- NAME [ROUNDS]`: what the suite does in one short round, in many rounds, told in figures. */
import { runLogPipe } from "./trials/log-pipe.ts";
import { runPipelining } from "./trials/pipelining.ts";

type Trial = { rounds: number; run: (rounds: number) => Promise<readonly string[]> };

const TRIALS: ReadonlyMap<string, Trial> = new Map([
  ["log-pipe", { rounds: 20, run: runLogPipe }],
  ["pipelining", { rounds: 3, run: runPipelining }],
]);

const [name = "", rounds] = process.argv.slice(2);
const trial = TRIALS.get(name);
if (trial === undefined) {
  console.error(`npm run trials -- NAME [ROUNDS], where NAME is one of: ${[...TRIALS.keys()].join(" ")}`);
  process.exitCode = 2;
} else {
  for (const line of await trial.run(rounds === undefined ? trial.rounds : Number(rounds))) console.log(line);
}
