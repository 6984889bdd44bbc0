/** The table of trials: what was tried, in how many rounds, for how long, and what came of it. */

export type Trial = {
  /** Unless the command line says otherwise. */
  rounds: number;
  /** The results, in figures, at the end or one after the other; a round that goes wrong throws. */
  run: (rounds: number) => Promise<readonly string[]> | AsyncIterable<string>;
};

export type Trials = ReadonlyMap<string, Trial>;

const formatRow = (name: string, rounds: string, seconds: string, result: string): string =>
  `${name.padEnd(22)} ${rounds.padStart(6)} ${seconds.padStart(8)}  ${result}`;

/** Whether all of them are good; a trial that fails has its message for a result, and the others run all the same. */
export async function printTable(
  trials: Iterable<readonly [name: string, trial: Trial]>,
  asked: number | undefined,
  print: (line: string) => void,
): Promise<boolean> {
  print(formatRow("what", "rounds", "seconds", "result"));
  let good = true;
  for (const [name, trial] of trials) {
    const rounds = asked ?? trial.rounds;
    const startMs = performance.now();
    const tell = (result: string): void => {
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      print(formatRow(name, String(rounds), seconds, result));
    };
    try {
      for await (const result of await trial.run(rounds)) tell(result);
    } catch (fault) {
      good = false;
      tell(`FAILED: ${fault instanceof Error ? fault.message : fault}`);
    }
  }
  return good;
}
