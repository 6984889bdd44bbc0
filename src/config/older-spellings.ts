/**
 * Settings by a spelling of the release before. They are read like the newer ones, and `check` and the start warn of each;
 * the next release takes the rows out, and so refuses them.
 */
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { isJsonObject } from "../spec/rfc8259.ts";

/** `now` is the newer spelling of the setting's name or, with `value`, of that value of it. */
type Older = { path: string; value?: string; now: string };

const OLDER: readonly Older[] = [
  { path: "signIn.providers.*.requiredAcr", now: "acr" },
  { path: "signIn.providers.*.maxAgeSeconds", now: "signInSecondsMax" },
  { path: "signIn.providers.*.assertionAudience", value: "token_endpoint", now: "token-endpoint" },
];

/** Changes the file to the newer spellings, and returns a warning for each older one. */
export const respell = (file: JsonObject): readonly string[] => [...renamed(file), ...moved(file)];

const renamed = (file: JsonObject): readonly string[] =>
  OLDER.flatMap(({ path, value, now }) => {
    const [names, name] = [path.split(".").slice(0, -1), path.replace(/^.*\./, "")];
    return sectionsAt(file, names).flatMap(([at, section]) => {
      const given = section[name];
      if (value !== undefined) {
        if (given !== value) return [];
        section[name] = now;
        return [`${at}${name}: "${value}" is spelled "${now}" now: change it, ${REFUSED}`];
      }
      // An older name beside the newer one stays, and is refused as a setting that is not known.
      if (given === undefined || section[now] !== undefined) return [];
      section[now] = given;
      Reflect.deleteProperty(section, name);
      return [`${at}${name}: is called ${now} now: rename it, ${REFUSED}`];
    });
  });

/** The title of a client is one of an agent now; beside one there it stays, and is refused. */
const moved = (file: JsonObject): readonly string[] =>
  sectionsAt(file, ["clients", "*"]).flatMap(([at, client]) => {
    const id = at.slice("clients.".length, -1);
    const { agents = {} } = file;
    if (client.title === undefined || !isJsonObject(agents) || Object.hasOwn(agents, id)) return [];
    file.agents = { ...agents, [id]: { title: client.title } };
    Reflect.deleteProperty(client, "title");
    return [`${at}title: is agents.${id}.title now: move it, ${REFUSED}`];
  });

const REFUSED = "because the next release refuses the older spelling";

/** The objects at a path, each with the path where it stands. */
function sectionsAt(section: Json, [first, ...rest]: readonly string[], at = ""): [string, JsonObject][] {
  if (!isJsonObject(section)) return [];
  if (first === undefined) return [[at, section]];
  const below = Object.entries(section).filter(([name]) => first === "*" || name === first);
  return below.flatMap(([name, value]) => sectionsAt(value, rest, `${at}${name}.`));
}
