/** The style of every page. It stands in the page, and its digest in the Content-Security-Policy. */
import type { SchemeColours } from "../../settings/colours.ts";
import { GROUNDS } from "../../settings/colours.ts";

const [lightCard, lightPage] = GROUNDS.light;
const [darkCard, darkPage] = GROUNDS.dark;

/** The colours beside those of the operator, for tests of their contrast too. */
export const TONES = {
  light: {
    ink: "#1b1f24",
    quiet: "#4d5662",
    line: "#d3d9e0",
    notice: "#fff5dc",
    edge: "#8f5f00",
    gift: "#1a6b34",
    refusal: "#b3261e",
  },
  dark: {
    ink: "#eceff3",
    quiet: "#b4bcc8",
    line: "#3a424c",
    notice: "#2c2410",
    edge: "#e3b341",
    gift: "#5bc980",
    refusal: "#ff8f85",
  },
} as const;

/** PAGE-D-37: the grounds of the discs, in both schemes, with white letters. */
export const DISCS = ["#8a3b12", "#1f5f8b", "#5b3f9e", "#1a6b34", "#8c2f5f", "#4d5662"] as const;

/** The heights of a bar, an eighth of a line each: they are classes, since a page has no style of its own. */
export const BAR_STEPS = 24;
const BARS = Array.from({ length: BAR_STEPS }, (_, index) => index + 1);

const tones = (of: Record<string, string>): string =>
  Object.entries(of)
    .map(([name, colour]) => `--${name}:${colour}`)
    .join(";");

const RULES = `*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;overflow-wrap:anywhere;border-top:.3rem solid var(--accent)}
header,main,footer{max-width:40rem;margin:0 auto;padding:.5rem 1.25rem}
header p{margin:0;font-weight:600}
header img{display:block;height:2rem;max-width:100%;object-fit:contain}
main{background:var(--card);padding:.75rem 1.25rem .25rem}
footer{display:flex;flex-wrap:wrap;gap:0 2rem;justify-content:space-between;font-size:.875rem;color:var(--quiet)}
footer p{margin:.1rem 0}
h1{font-size:1.375rem;line-height:1.25;margin:.35rem 0 .5rem}
.unnamed{font-size:.8em}
h2{font-size:1.15rem;line-height:1.3;margin:1.75rem 0 .4rem}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
h4{font-size:1rem;margin:.75rem 0 0}
p{margin:.4rem 0}
bdi{hyphens:manual}
code{font:inherit}
.id{margin:0 0 .5rem;color:var(--quiet);font-size:.8rem;line-height:1.35}
.hint{color:var(--quiet);font-size:.875rem}
dl{margin:.5rem 0;padding:0}
dl div{border-top:1px solid var(--line);padding:.4rem 0}
dt{color:var(--quiet);font-size:.875rem}
dd{margin:0}
ul,ol{padding-left:1.25rem;margin:.25rem 0}
li{margin:.25rem 0}
a{color:var(--accent);text-underline-offset:.15em}
p a{display:inline-block;min-height:1.5rem}
.chain{margin:0 0 .5rem;padding:0;font-size:.875rem;color:var(--quiet)}
p.chain{margin:0}
.chain li{display:inline}
.chain li+li::before{content:"";display:inline-block;width:.4em;height:.4em;margin:.1em .5em .1em .3em;border:solid var(--quiet);border-width:2px 2px 0 0;transform:rotate(45deg)}
form{margin:0}
fieldset{border:1px solid var(--line);border-radius:.75rem;margin:0 0 .5rem;padding:.45rem 1rem .3rem;min-width:0}
legend{float:left;width:100%;padding:0;font-weight:600}
legend+*{clear:both}
fieldset .hint{margin:0 0 .1rem;line-height:1.35}
#tick-hint{margin:.75rem 0 .3rem}
#tick-hint strong{font-size:1rem;color:var(--ink)}
fieldset fieldset{border-width:1px 0 0;border-radius:0;margin:.25rem 0 0;padding:.3rem 0 0}
.parties{border:0;padding:0;margin:1rem 0 .5rem}
.parties legend{margin-bottom:.35rem}
.parties label{border:1px solid var(--line);border-radius:.75rem;padding:.4rem .6rem .4rem 1rem;margin:.4rem 0}
.parties label span{line-height:1.3}
.part,span.id{display:block;margin:0;color:var(--quiet);font-size:.875rem}
span.id{font-size:.8rem}
.job{background:var(--page);border-radius:.75rem;padding:.5rem 1rem;margin:.5rem 0;font-size:.875rem;line-height:1.4}
.job ul{padding-left:1.1rem}
.job p,.job li{margin:.15rem 0}
.job h2{margin:0 0 .25rem}
.job summary{padding-bottom:0}
label{display:flex;gap:.75rem;align-items:flex-start;padding:.2rem 0;line-height:1.35;cursor:pointer}
label span{padding-top:.05rem}
.every{border-radius:.75rem;background:var(--page);padding:.35rem 1rem;margin:.5rem 0 .75rem}
.until{margin:.75rem 0 .5rem;line-height:1.4}
form:not(:has(.warning,.one:nth-of-type(4))) :is(.every,.further,.until,#tick-hint){margin-top:1rem}
input[type=checkbox]{flex:none;width:1.5rem;height:1.5rem;margin:0;accent-color:var(--accent)}
form:has([name=all]:checked) :is([name=scope],[name=agent],[type=checkbox][name=detail]){appearance:none;border:1px solid var(--accent);border-radius:.2rem;display:grid;place-content:center}
form:has([name=all]:checked) :is([name=scope],[name=agent],[type=checkbox][name=detail])::before{content:"";width:.4rem;height:.85rem;border:solid var(--accent);border-width:0 .2rem .2rem 0;transform:translateY(-.1rem) rotate(45deg)}
form:has([name=all]:checked) label:has([name=scope],[name=agent],[name=detail]){pointer-events:none}
summary{color:var(--accent);cursor:pointer;padding:.2rem 0;min-height:1.5rem;font-size:.875rem}
.further{margin:.75rem 0}
.further summary{color:var(--ink);font-size:.9375rem;line-height:1.35;padding:0}
.limit{display:block;margin-top:.1rem;font-size:.875rem;color:var(--quiet)}
.warning{background:var(--notice);border:1px solid var(--edge);border-left-width:.4rem;border-radius:.5rem;padding:.35rem .9rem;margin:.4rem 0;line-height:1.35}
.warning p{margin:.2rem 0}
.warning p+p{margin-top:.4rem}
.warning label{font-weight:600}
.choices{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(9rem,100%),1fr));gap:1rem;margin:.6rem 0 0;padding:0;list-style:none}
ul.choices{grid-template-columns:1fr;gap:.6rem}
.choices li{margin:0;display:grid}
button,.choices a{font:inherit;font-weight:600;width:100%;min-height:2.75rem;padding:.5rem 1rem;border:2px solid var(--accent);border-radius:.5rem;background:var(--card);color:var(--accent);cursor:pointer;text-align:center;text-decoration:none;display:grid;place-content:center}
button:hover,.choices a:hover{background:var(--page)}
.ways li:first-child a{background:var(--accent);color:var(--card)}
.ways li:first-child a:hover{text-decoration:underline}
[value=refuse]{border:1px solid var(--line);color:var(--ink)}
[value=allow]{background:var(--accent);border:1px solid var(--accent);color:var(--card)}
[value=allow]:hover{background:var(--accent);text-decoration:underline}
form:has([name=scope]):not(:has([name=scope]:checked,[name=all]:checked)) [value=allow]{background:var(--page);border:1px solid var(--line);color:var(--quiet)}
.missing{display:none}
form:has([name=scope]):not(:has([name=scope]:checked,[name=all]:checked)) .missing{display:inline;color:var(--ink)}
.who button{display:inline;width:auto;min-height:1.5rem;padding:0;border:0;background:none;font-weight:400;text-decoration:underline;text-underline-offset:.15em}
.who{font-size:.875rem}
.cards{padding:0;list-style:none}
.cards>li{border:1px solid var(--line);border-radius:.75rem;padding:.75rem 1rem .6rem;margin:.6rem 0}
.cards li li{margin:.1rem 0}
.cards ul li{list-style:disc}
.cards .hint{line-height:1.35}
.cards h3,.cards h4,.cards p,.cards .chain{margin:0}
.cards dl{margin:.25rem 0}
.cards dl div{border-top:0;padding:.1rem 0}
.party{display:flex;gap:.65rem;align-items:center;margin-bottom:.15rem}
.party>div{min-width:0}
.party h1,.party .id{margin:0}
.disc{flex:none;display:inline-grid;place-content:center;width:2.5rem;height:2.5rem;border-radius:50%;color:#fff;font-weight:700;line-height:1}
.disc.mark{background:var(--edge);color:var(--card)}
.disc.done{background:var(--gift);color:var(--card)}
.done::before{content:"";width:.6rem;height:1.15rem;border:solid;border-width:0 .25rem .25rem 0;transform:translateY(-.15rem) rotate(45deg)}
img{background:#fff;border-radius:.25rem}
img.disc{border-radius:.4rem;object-fit:contain}
label .disc{width:2rem;height:2rem;padding:0;font-size:.875rem}
${DISCS.map((ground, index) => `.d${index}{background:${ground}}`).join("\n")}
.given{padding:.3rem 0 .2rem}
.given+.given{border-top:1px solid var(--line);margin-top:.4rem;padding-top:.5rem}
.given dl{font-size:.95rem}
.acts{display:flex;flex-wrap:wrap;gap:0 1.25rem;align-items:center}
.acts>[open]{flex-basis:100%}
.week{display:flex;gap:.25rem;padding:0;margin:.5rem 0 0;list-style:none;text-align:center}
.week li{flex:1;min-width:0;margin:0;display:flex;flex-direction:column;justify-content:flex-end;font-size:.875rem;line-height:1.3}
.bar{height:.2rem;margin:.1rem;border-radius:.2rem;background:var(--line)}
.bar:not(.b0){background:var(--accent)}
${BARS.map((step) => `.b${step}{height:${step / 8}rem}`).join("")}
.no{color:var(--refusal);font-weight:600;min-height:1.3em}
.ask summary{display:inline-block;margin:.3rem 0;padding:.2rem .9rem;border:1px solid var(--accent);border-radius:.5rem;font-weight:600}
.ask form{border:1px solid var(--edge);border-radius:.5rem;padding:.75rem 1rem;margin:.5rem 0 0}
.ask button{margin-top:.5rem}
.danger summary{border-color:var(--refusal);color:var(--refusal)}
.danger form{border-color:var(--refusal)}
.danger button{border-color:var(--refusal);background:var(--refusal);color:var(--card)}
.danger button:hover{background:var(--refusal);text-decoration:underline}
.day{border-top:1px solid var(--line)}
.day>summary{padding:.4rem 0}
.day h3{display:inline;margin:0;color:var(--ink)}
.events{padding:0;list-style:none}
.events>li{display:flex;gap:.75rem}
.events div{min-width:0}
.events p{margin:0;line-height:1.35}
.events summary{color:var(--quiet)}
.time{color:var(--quiet);font-size:.875rem}
.sign{flex:none;display:inline-grid;place-content:center;width:1.5rem;height:1.5rem;border-radius:50%;background:var(--accent);color:var(--card);font-weight:700;line-height:1}
.gift{background:var(--gift);border-radius:.3rem}
.refusal{background:none;color:var(--refusal);border:2px solid}
.access{background:none;color:var(--accent);border:2px solid}
.ending{background:var(--edge);border-radius:.3rem}
.session{background:var(--quiet)}
.days{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end;padding-bottom:.75rem}
.days label{flex-direction:column;gap:0;padding:0}
.days button{width:auto;min-height:2.5rem;padding:.25rem 1.5rem}
input[type=date]{font:inherit;min-height:2.5rem;padding:.25rem .5rem;border:1px solid var(--quiet);border-radius:.5rem;background:var(--card);color:var(--ink);max-width:100%}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
@media(min-width:44rem){header{margin-top:1rem}main{border:1px solid var(--line);border-radius:.75rem;padding:1rem 2rem 1.25rem}header,footer{padding:.6rem 2rem}ul.choices{grid-template-columns:repeat(auto-fit,minmax(9rem,17.4rem))}footer{margin-bottom:2rem}}
`;

/** The colours are `#rrggbb`, checked when they were read. */
export const styleOf = ({ light, dark }: SchemeColours): string => `
:root{color-scheme:light dark;${tones({ ...TONES.light, card: `${lightCard}`, page: `${lightPage}`, accent: light })}}
@media(prefers-color-scheme:dark){:root{${tones({ ...TONES.dark, card: `${darkCard}`, page: `${darkPage}`, accent: dark })}}}
${RULES}`;
