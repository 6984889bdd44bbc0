/** The frame of every page, and its headers. */
import type { Html } from "./html.ts";
import { html } from "./html.ts";

export type Page = { status: number; title: string; body: Html };

/** Kept as one text, because its digest stands in the Content-Security-Policy. */
export const STYLE = `
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#f2f4f7;--line:#8a94a3;--accent:#1f4fbf}
@media(prefers-color-scheme:dark){:root{--ink:#eceff3;--paper:#14171b;--soft:#1f242b;--line:#8a94a3;--accent:#9dbdff}}
*{box-sizing:border-box}
body{margin:0;background:var(--soft);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{max-width:38rem;margin:0 auto;padding:1.5rem;background:var(--paper);min-height:100vh}
h1,p,li,label,bdi{overflow-wrap:anywhere}
h1{font-size:1.4rem;line-height:1.3}
fieldset{border:1px solid var(--line);border-radius:.4rem;margin:1rem 0;padding:.5rem 1rem}
label{display:flex;gap:.75rem;padding:.4rem 0;min-height:2rem}
input[type=checkbox]{width:1.5rem;height:1.5rem;flex:none}
button,.button{font:inherit;min-height:2.75rem;padding:.5rem 1.5rem;border:2px solid var(--accent);border-radius:.4rem;background:var(--paper);color:var(--accent);cursor:pointer;display:inline-block}
.warning{border:2px solid var(--ink);border-radius:.4rem;padding:.75rem 1rem}
.choices{display:flex;flex-wrap:wrap;gap:1rem;margin:1.5rem 0}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
a{color:var(--accent)}
`;

export function frame({ title, body }: Page): string {
  const style = html`<style>`.toString() + STYLE + html`</style>`.toString();
  const head = html`<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>`;
  return `<!doctype html><html lang="en"><head>${head}${style}</head><body>${html`<main>${body}</main>`}</body></html>`;
}
