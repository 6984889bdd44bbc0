/** A strict reader of the HTML that our pages are written in, far narrower than HTML itself. */
import assert from "node:assert/strict";

export type Element = {
  name: string;
  attributes: ReadonlyMap<string, string>;
  children: (Element | string)[];
};

const VOID = ["meta", "input"];
const TAG = /^<([a-z][a-z0-9]*)((?:\s+[a-z][a-z-]*(?:="[^"<>]*")?)*)>/;
const ATTRIBUTE = /([a-z][a-z-]*)(?:="([^"<>]*)")?/g;

/** The root element. Fails on unquoted values, on what is not closed, and on characters that should be escaped. */
export function parseMarkup(document: string): Element {
  const start = "<!doctype html>\n";
  assert.ok(document.startsWith(start));
  const root: Element = { name: "#document", attributes: new Map(), children: [] };
  const open = [root];
  let rest = document.slice(start.length);
  while (rest !== "") {
    const parent = open.at(-1) ?? assert.fail("more is closed than was opened");
    const [close = "", closed] = /^<\/([a-z0-9]+)>/.exec(rest) ?? [];
    const [tag = "", name = "", written = ""] = TAG.exec(rest) ?? [];
    const [text = ""] = /^[^<]+/.exec(rest) ?? [];
    if (closed !== undefined) {
      assert.equal(closed, parent.name);
      open.pop();
    } else if (tag !== "") {
      const pairs = [...written.matchAll(ATTRIBUTE)].map(
        ([, key = "", value = ""]) => [key, decode(value)] as const,
      );
      const element: Element = { name, attributes: new Map(pairs), children: [] };
      assert.equal(pairs.length, element.attributes.size, `an attribute twice: ${tag}`);
      parent.children.push(element);
      if (!VOID.includes(name)) open.push(element);
    } else {
      assert.notEqual(text, "", `not our HTML: ${rest.slice(0, 80)}`);
      parent.children.push(parent.name === "style" ? text : decode(text));
    }
    rest = rest.slice((close || tag || text).length);
  }
  assert.deepEqual(open, [root], "something is not closed");
  const [html] = root.children.filter((one) => typeof one === "object");
  return html ?? assert.fail("there is nothing");
}

function decode(text: string): string {
  assert.doesNotMatch(text.replace(/&(?:#\d+|amp);/g, ""), /[&>]/, text);
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))).replaceAll("&amp;", "&");
}

/** It and all below it, in the order of the text. */
export const elementsOf = (element: Element): Element[] => [
  element,
  ...element.children.flatMap((child) => (typeof child === "object" ? elementsOf(child) : [])),
];

/** The text of it, its white space joined. */
export const textOf = (element: Element): string => rawTextOf(element).replace(/\s+/g, " ").trim();

const INLINE = ["a", "bdi", "span", "strong"];
const rawTextOf = ({ children }: Element): string =>
  children
    .map((child) => {
      if (typeof child === "string") return child;
      const text = child.name === "style" ? "" : rawTextOf(child);
      return INLINE.includes(child.name) ? text : ` ${text} `;
    })
    .join("");

/** What a user reads on a page. */
export const shownBy = (document: string): string => textOf(parseMarkup(document));

/** The page without the id of its request, which is another one each time. */
export const withoutId = (document: string): string => document.replace(/<code>[^<]+<\/code>/, "");

/** Names of elements and attributes alone, as they are nested. */
export const shapeOf = ({ name, attributes, children }: Element): unknown => [
  name,
  [...attributes.keys()],
  children.filter((child) => typeof child === "object").map(shapeOf),
];
