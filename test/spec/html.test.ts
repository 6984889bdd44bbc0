/** Markup by the one template function. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { html, link } from "../../src/spec/html.ts";

test("PAGE-D-6 what is put in is text, and markup stays markup", () => {
  const inner = html`<b>${"<&>"}</b>`;
  assert.equal(
    String(html`<p title="${`"'\``}">${inner}${[inner, inner]}${7}${undefined}</p>`),
    ['<p title="&#34;&#39;&#96;">', "<b>&#60;&#38;&#62;</b>".repeat(3), "7</p>"].join(""),
  );
});

test("PAGE-D-6 what only looks like markup is text", () => {
  for (const forged of [{ toString: () => "<script>" }, ["<script>"], Object.create(html``)]) {
    assert.doesNotMatch(escapedOf(forged), /<script>/);
  }
});

/** Of a value that the types do not let in. */
function escapedOf(value: unknown): string {
  try {
    return String(html`${value as string}`);
  } catch (fault) {
    assert.ok(fault instanceof TypeError);
    return "";
  }
}

const links = [
  ["https://app.example/cb", true],
  ["http://127.0.0.1:1/cb", true],
  ["com.example.app:/cb", true],
  ["javascript:alert(1)", false],
  ["JaVaScRiPt:alert(1)", false],
  ["data:text/html,x", false],
  ["vbscript:x", false],
  ["blob:https://as.example/1", false],
  ["file:///etc/passwd", false],
  [" javascript:alert(1)", false],
  ["java\nscript:alert(1)", false],
  ["\u0001javascript:alert(1)", false],
  ["//evil.example", false],
] as const;
for (const [href, isLink] of links) {
  test(`HTTP-D-44, PAGE-D-13 ${JSON.stringify(href)} is ${isLink ? "a link" : "no link"}`, () => {
    assert.equal(String(link(href, html`words`)), isLink ? `<a href="${href}">words</a>` : "words");
  });
}
