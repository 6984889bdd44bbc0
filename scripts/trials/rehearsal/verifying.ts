/**
 * The verifier of the rehearsal, a process of its own: verifies each token when it gets it, and one in ten once more later,
 * when the key that signed it may sign no longer.
 */
import * as v from "valibot";
import { makeVerifier, type Publisher, type Verifier } from "../verifier.ts";

export const Verified = v.object({
  verified: v.number(),
  /** Why tokens were refused. */
  failed: v.array(v.string()),
  /** Keys that signed. */
  kids: v.array(v.string()),
  /** How often the key set was fetched. */
  fetches: v.number(),
});
export type Verified = v.InferOutput<typeof Verified>;

const KEPT = 10;
/** Less than a token lives. */
const LATER_MS = 200_000;

function startVerifying(publisher: Publisher) {
  let verifier: Promise<Verifier> | undefined;
  let [verified, count] = [0, 0];
  const failed: string[] = [];
  const kids = new Set<string>();
  const kept: { token: string; timeMs: number }[] = [];
  let last: Promise<void> = Promise.resolve();
  const check = async (token: string, when: string): Promise<void> => {
    try {
      verifier ??= makeVerifier(publisher, 0);
      kids.add(await (await verifier).verify(token));
      verified++;
    } catch (fault) {
      failed.push(`${when}: ${fault instanceof Error ? fault.message : fault}`);
    }
  };
  const checkKept = async (ageMs: number): Promise<void> => {
    for (let first = kept[0]; first !== undefined && Date.now() - first.timeMs >= ageMs; first = kept[0]) {
      kept.shift();
      await check(first.token, "later");
    }
  };
  return {
    /** In order, and one at a time. */
    take(tokens: readonly string[]): void {
      last = last.then(async () => {
        for (const token of tokens) {
          await check(token, "when it was issued");
          if (count++ % KEPT === 0) kept.push({ token, timeMs: Date.now() });
        }
        await checkKept(LATER_MS);
      });
    },
    async end(): Promise<Verified> {
      await last;
      await checkKept(0);
      return { verified, failed, kids: [...kids], fetches: (await verifier)?.fetches() ?? 0 };
    },
  };
}

if (import.meta.main) {
  let verifying: ReturnType<typeof startVerifying> | undefined;
  process.on("message", async (message: Publisher | readonly string[] | "end") => {
    if (message === "end") process.send?.(await verifying?.end());
    else if ("issuer" in message) verifying = startVerifying(message);
    else verifying?.take(message);
  });
  process.on("disconnect", () => process.exit());
}
