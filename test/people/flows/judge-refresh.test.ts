/** What becomes of a refresh token that was replaced, by when it was, and from where it comes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeRefresh } from "../../../src/people/flows/judge-refresh.ts";
import type { Family, FamilyRotation, PresentedFamily } from "../../../src/records.ts";
import { defined } from "../../../src/result.ts";
import { makeFamily } from "../../adapters/store/families.contract.ts";
import { NOW_SECONDS } from "../../adapters/store/store.contract.ts";

const SETTINGS = { seconds: 2_592_000, idleSeconds: 604_800, briefSeconds: 43_200, retryMs: 10_000 };
const NOW_MS = 1_000_000;
const by = "here";
/** The tokens 1, 2 and 3 were replaced from here, the first one before the window. */
const LATEST: readonly FamilyRotation[] = [
  { generation: 3, by, atMs: NOW_MS - 2_000 },
  { generation: 2, by, atMs: NOW_MS - 10_000 },
  { generation: 1, by, atMs: NOW_MS - 10_001 },
];

type Moment = {
  presented: number;
  source?: string;
  latest?: readonly FamilyRotation[];
  isForgotten?: boolean;
  retriedElsewhere?: true;
  jkt?: string;
};
const moments: readonly (readonly [name: string, moment: Moment, want: string])[] = [
  ["REFRESH-D-5 the token before gets its successor again", { presented: 3 }, "again"],
  ["REFRESH-D-5 the one before that, within the window: waits", { presented: 2 }, "wait"],
  ["REFRESH-D-7 one from before the window: is a reuse", { presented: 1 }, "refresh_token_reused"],
  [
    "REFRESH-D-7 one whose replacement is not noted: is a reuse",
    { presented: 2, latest: LATEST.slice(0, 1) },
    "refresh_token_reused",
  ],
  [
    "REFRESH-D-5 the token before, whose successor is kept no more: waits",
    { presented: 3, isForgotten: true },
    "wait",
  ],
  ["REFRESH-D-21 the token before, once from elsewhere: gets it", { presented: 3, source: "there" }, "again"],
  [
    "REFRESH-D-21 the token before, twice from elsewhere: is a reuse",
    { presented: 3, source: "there", retriedElsewhere: true },
    "refresh_token_reused",
  ],
  [
    "REFRESH-D-21 the one before that, from elsewhere: is a reuse",
    { presented: 2, source: "there" },
    "refresh_token_reused",
  ],
  [
    "REFRESH-D-21 the token before, where the source is forgotten: is of the same source",
    { presented: 3, source: "there", latest: [{ generation: 3, atMs: NOW_MS }], retriedElsewhere: true },
    "again",
  ],
  [
    "REFRESH-D-8 a bound one within the window, from anywhere: waits",
    { presented: 2, source: "there", jkt: "k" },
    "wait",
  ],
  [
    "REFRESH-D-8 a bound one from before the window: ends nothing",
    { presented: 1, jkt: "k" },
    "refresh_token_old",
  ],
];
for (const [name, { presented, source = by, latest = LATEST, isForgotten, jkt, ...facts }, want] of moments) {
  test(name, () => {
    const family = defined<Family>({ ...makeFamily({ generation: 4 }), jkt });
    const sealed = isForgotten ? undefined : "sealed";
    const rotated = defined<NonNullable<PresentedFamily["rotated"]>>({ latest, nowMs: NOW_MS, sealed });
    const presenter = defined<Parameters<typeof judgeRefresh>[1]>({
      clientId: family.clientId,
      isPublic: true,
      source,
      jkt,
    });
    const judged = judgeRefresh({ family, presented, rotated, ...facts }, presenter, SETTINGS, NOW_SECONDS);
    if ("use" in judged) {
      assert.equal(judged.use, want);
      return;
    }
    assert.equal(judged.waitSeconds === undefined ? judged.refused : "wait", want);
    assert.equal(judged.ends, want === "refresh_token_reused");
  });
}
