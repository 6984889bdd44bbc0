/** What people are told of agents: by the operator's words, by an agent's own, and in which language. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Worded } from "../../src/policy/worded.ts";
import { compileAgents, inWords, namingOf, resembled } from "../../src/settings/agents.ts";

const TD = "spiffe://td.example";
const AGENTS = compileAgents(
  {
    [`${TD}/*`]: { title: "Ours" },
    [`${TD}/agents/*`]: { title: "Agents", purpose: "Act for users." },
    [`${TD}/agents/planner`]: {
      title: { en: "Trip planner", de: "Reiseplaner", "pt-BR": "Planejador" },
      owner: "Travel desk",
      contact: "travel@example.com",
    },
    desk: { title: "Desk" },
    shelf: { title: "Library" },
    "https://agents.example/*": { title: "Agents of another company" },
    "https://partner.example": { title: "Partner" },
  },
  "ACME Travel",
);

const titleOf = (id: string, claimed?: Worded, languages: readonly string[] = ["en"]): string | undefined => {
  const naming = namingOf(AGENTS, id, claimed);
  return naming && inWords(naming, languages).title;
};

describe("NAME-D-1 the operator's name for an id", () => {
  const rows: readonly (readonly [id: string, title: string | undefined])[] = [
    [`${TD}/agents/planner`, "Trip planner"],
    [`${TD}/agents/planner/part`, "Agents"],
    [`${TD}/agents/booking`, "Agents"],
    [`${TD}/agents/*`, "Agents"],
    [`${TD}/agentsmith`, "Ours"],
    [`${TD}/agents`, "Ours"],
    ["spiffe://td.example.attacker.example/agents/planner", undefined],
    [`${TD}/AGENTS/planner`, "Ours"],
    ["desk", "Desk"],
    ["Desk", undefined],
    ["https://agents.example/one.json", "Agents of another company"],
    ["https://agents.example.attacker.example/one.json", undefined],
    ["https://partner.example", "Partner"],
    ["https://partner.example/", undefined],
    ["__proto__", undefined],
    ["constructor", undefined],
    ["", undefined],
  ];
  for (const [id, title] of rows) {
    test(`${id === "" ? "an empty id" : id} is ${title === undefined ? "not named" : `named ${title}`}`, () =>
      assert.equal(titleOf(id), title));
  }
});

test("NAME-D-1 the operator's name comes with purpose, owner and contact, and says that it is the operator's", () => {
  const [planner, booking] = ["planner", "booking"].map((name) => {
    const naming = namingOf(AGENTS, `${TD}/agents/${name}`);
    return naming && inWords(naming, ["de"]);
  });
  assert.deepEqual(planner, {
    title: "Reiseplaner",
    owner: "Travel desk",
    contact: "travel@example.com",
    source: "operator",
  });
  assert.deepEqual(booking, { title: "Agents", purpose: "Act for users.", source: "operator" });
});

test("NAME-D-2 what a client calls itself counts where the operator says nothing, and is marked as its claim", () => {
  const naming = namingOf(AGENTS, "c_1", { und: "Notes", de: "Notizen" });
  assert.deepEqual(naming && inWords(naming, ["de"]), { title: "Notizen", source: "claimed" });
  assert.equal(titleOf("c_1", { und: "Notes", de: "Notizen" }), "Notes");
  assert.equal(titleOf("desk", "My own name"), "Desk");
});

describe("NAME-D-5 the text for a reader", () => {
  const text = { en: "one", de: "eins", "pt-BR": "um" };
  const rows: readonly (readonly [languages: readonly string[], found: string])[] = [
    [["de"], "eins"],
    [["DE-at"], "eins"],
    [["pt"], "um"],
    [["fr", "de"], "eins"],
    [["fr"], "one"],
    [[], "one"],
    [["__proto__", "constructor"], "one"],
    [["x".repeat(1024 * 1024), "de"], "eins"],
  ];
  for (const [languages, found] of rows) {
    const shown = languages.map((one) => one.slice(0, 20)).join(", ");
    test(`of ${shown === "" ? "no language" : shown} is "${found}"`, () =>
      assert.equal(titleOf("c_1", text, languages), found));
  }
});

describe("NAME-D-3 a name that a client chose is not shown where it looks like an agent's", () => {
  const alike: readonly (readonly [how: string, name: Worded])[] = [
    ["equal", "Trip planner"],
    ["in other case", "TRIP PLANNER"],
    ["with a capital I for an l", "Trip pIanner"],
    ["with digits for letters", "Tr1p p1anner"],
    ["with rn for m", "Agents of another cornpany"],
    ["in full-width letters", "Ｔｒｉｐ　ｐｌａｎｎｅｒ"],
    ["in mathematical letters", "𝐓𝐫𝐢𝐩 𝐩𝐥𝐚𝐧𝐧𝐞𝐫"],
    ["with a letter of another script", "Trip plаnner"],
    ["with accents", "Trîp plânner"],
    ["with 4 for an a", "Trip pl4nner"],
    ["with 8 for a b", "Li8rary"],
    ["with letters that have a stroke", "Ŧrip płanner"],
    ["with letters that have a hook", "Ƭriƥ plaɳɲer"],
    ["with a turned letter", "Trip plannǝɹ"],
    ["with zero-width characters", "Trip\u200b pl\u200danner"],
    ["reversed by a mark and so written", "\u202eTrip planner\u202c"],
    ["with other spaces and signs", "«Trip-planner!»"],
    ["under a flood of combining marks", `Trip p${"\u0301".repeat(500)}lanner`],
    ["in one of its languages", { en: "Anything", fr: "Reiseplaner" }],
    ["with words around it", "The Trip planner (official)"],
    ["in small capitals", "ᴛʀɪᴘ ᴘʟᴀɴɴᴇʀ"],
    ["in letters of Lisu", "ꓔꓣꓲꓑ ꓑꓡꓮꓠꓠꓰꓣ"],
    ["in letters of Cherokee", "ᎢᎡᎥᏢ ᏢᏞᎪNNᎬᎡ"],
    ["in circles", "🅣🅡🅘🅟 🅟🅛🅐🅝🅝🅔🅡"],
    ["in squares", "🆃🆁🅸🅿 🄿🄻🄰🄽🄽🄴🅁"],
    ["in letters of flags", "🇹🇷🇮🇵 🇵🇱🇦🇳🇳🇪🇷"],
    ["the name of the operator", "Acme Trave1"],
    ["an id", `${TD}/agents/planner`],
    ["a word of two scripts that no agent has", "Аccounts"],
  ];
  for (const [how, name] of alike) {
    test(`${how} is not shown`, () => {
      assert.notEqual(resembled(AGENTS, name), undefined);
      assert.equal(titleOf("c_1", name), undefined);
    });
  }
  const others: readonly Worded[] = [
    "Trip",
    "Planner of trips",
    "Заметки",
    "旅のnote",
    "Notizen für später",
    "Desktop",
    "Partnership",
    "IT-отдел",
    "😀",
  ];
  for (const name of others) {
    test(`${name} looks like none and is shown`, () => assert.equal(titleOf("c_1", name), name));
  }
  test("the agent that it looks like is told, or that it mixes scripts", () => {
    assert.equal(resembled(AGENTS, "TRIP PLANNER"), `${TD}/agents/planner`);
    assert.equal(resembled(AGENTS, "Аccounts"), "mixed_scripts");
  });
  test("a name of 10,000 characters, or of signs alone, looks like none", () => {
    assert.equal(resembled(AGENTS, "rn".repeat(5000)), undefined);
    assert.equal(resembled(AGENTS, "…"), undefined);
  });
});
