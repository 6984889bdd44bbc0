/** The style of every page. It stands in the page, and its digest in the Content-Security-Policy. */
import { GROUNDS, type SchemeColours } from "../../settings/colours.ts";

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
body{margin:0;background:var(--card);color:var(--ink);font:1rem/1.4 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;overflow-wrap:anywhere;border-top:.25rem solid var(--accent)}
header,main,footer{max-width:36rem;margin:0 auto;padding:.5rem 1.25rem}
header{border-bottom:1px solid var(--line)}
header p{margin:0;font-weight:600}
header img{display:block;height:2rem;max-width:100%;object-fit:contain}
main{background:var(--card);padding:.75rem 1.25rem .5rem}
footer{display:flex;flex-wrap:wrap;gap:0 2rem;justify-content:space-between}
footer p{margin:0}
h1{font-size:1.375rem;line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.375rem;line-height:1.2;margin:2rem 0 .5rem}
.unnamed,h3,h4{font-size:1rem;line-height:1.25;margin:0}
h1,h2,h3,h4,strong,legend,button{font-weight:600}
p{margin:.5rem 0}
bdi{hyphens:manual}
code{font:inherit}
footer,.hint,.id,.chain,.told,dt,.who,.days,summary{font-size:.8125rem;line-height:1.4}
footer,.hint,.id,.chain,.told,dt{color:var(--quiet)}
.id,.told{display:block;margin:0;font-weight:400}
dl{margin:.5rem 0;padding:0}
details>dl div{border-top:1px solid var(--line);padding:.5rem 0}
dd{margin:0}
ul,ol{padding-left:1.25rem;margin:.25rem 0}
ul{list-style:disc}
li{margin:.125rem 0}
a{color:var(--accent);text-underline-offset:.15em}
p a{display:inline-block;min-height:1.5rem}
.hint:has(+.chain){margin-bottom:0}
.job{border-left:.25rem solid var(--line);padding-left:1rem;margin:1rem 0}
.job p,.job h2{margin:0}
.chain{margin:0 0 .5rem}
:is(main>.hint:has(+.chain),main>.chain,main>.chain :is(li,.told)){display:inline;padding:0}
main>.hint:has(+.chain)::after{content:" "}
main>.chain li+li::before{content:" › "}
form{margin:0}
fieldset{border:1px solid var(--line);border-radius:.75rem;margin:0 0 .5rem;padding:.5rem 1rem .25rem;min-width:0}
legend{float:left;width:100%;padding:0 0 .125rem}
legend+*{clear:both}
fieldset .hint{margin:0 0 .25rem}
#tick-hint{margin:.75rem 0 .5rem}
form:not(:has(.warning label,.one:nth-of-type(4),.parties)) :is(#tick-hint,.until:not(.until+.until)){margin-top:1.25rem}
#tick-hint strong{font-size:1rem;color:var(--ink);margin-right:.5rem}
fieldset fieldset{border-width:1px 0 0;border-radius:0;margin:.5rem 0 0;padding:.5rem 0 0}
.parties label{display:grid;grid-template-columns:1.5rem 2rem 1fr;padding:.5rem 0}
.parties label+label{border-top:1px solid var(--line)}
.parties .share{grid-column:2/4}
.share>span{display:block}
label{display:flex;gap:.25rem .75rem;align-items:flex-start;padding:.25rem 0;cursor:pointer}
fieldset:has(.one:nth-of-type(4)) label{padding:.125rem 0}
.every,.row,.warning{border:1px solid var(--line);border-radius:.75rem;padding:.5rem 1rem;margin:0 0 .5rem}
#tick-hint+fieldset:has(+.every){border-bottom:0;border-radius:.75rem .75rem 0 0;margin:0}
#tick-hint+fieldset+.every{border-radius:0 0 .75rem .75rem}
.warning{background:var(--notice);border-color:var(--edge);padding-block:.375rem}
.warning p{margin:0 0 .25rem}
.warning>:last-child{margin-bottom:0}
.until{margin:.5rem 0}
.until+.until{margin-top:-.25rem}
.whole{white-space:nowrap}
input[type=checkbox]{appearance:none;flex:none;width:1.5rem;height:1.5rem;margin:0;border:1.5px solid var(--quiet);border-radius:.375rem;background:var(--card);display:grid;place-content:center}
input[type=checkbox]::before{width:.45rem;height:.85rem;border:solid var(--card);border-width:0 .2rem .2rem 0;transform:translateY(-.1rem) rotate(45deg)}
:is(input[type=checkbox]:checked,form:has([name=all]:checked) :is([name=scope],[name=agent],[name=detail])){background:var(--accent);border-color:var(--accent)}
:is(input[type=checkbox]:checked,form:has([name=all]:checked) :is([name=scope],[name=agent],[name=detail]))::before{content:""}
form:has([name=all]:checked) label:has([name=scope],[name=agent],[name=detail]){pointer-events:none}
summary{color:var(--accent);cursor:pointer;padding:.25rem 0;min-height:1.5rem}
.row summary,.warning summary{font-size:1rem;color:var(--ink);padding:0 .25rem 0 0;list-style:none;display:grid;grid-template-columns:minmax(0,1fr) auto;gap:.75rem;align-items:center}
:is(.row,.warning) summary::after{content:"";width:.5rem;height:.5rem;border:solid var(--quiet);border-width:0 2px 2px 0;transform:translateY(-.15rem) rotate(45deg)}
:is(.row,.warning details)[open]>summary::after{transform:translateY(.15rem) rotate(225deg)}
.limit{display:block;font-size:1rem;color:var(--ink)}
.warning label{font-weight:600}
.choices{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(9rem,100%),1fr));gap:.75rem;margin:.75rem 0 .5rem;padding:0;list-style:none}
ul.choices{grid-template-columns:1fr}
.choices li{margin:0;display:grid}
button,.choices a{font:inherit;font-weight:600;width:100%;min-height:2.75rem;padding:.5rem 1rem;border:1px solid var(--accent);border-radius:.75rem;background:var(--card);color:var(--accent);cursor:pointer;text-align:center;text-decoration:none;display:grid;place-content:center}
button:hover,.choices a:hover{text-decoration:underline}
.ways :first-child>a,.ways>a,[value=allow]{background:var(--accent);color:var(--card)}
[value=refuse]{border-color:var(--quiet);color:var(--ink)}
form:has([name=scope]):not(:has([name=scope]:checked,[name=all]:checked)) [value=allow]{background:color-mix(in srgb,var(--accent) 12%,var(--card));border-color:transparent;color:var(--quiet)}
.missing{display:none}
form:has([name=scope]):not(:has([name=scope]:checked,[name=all]:checked)) .missing{display:inline;color:var(--ink)}
.who p{display:flex;flex-wrap:wrap;align-items:baseline;gap:0 1rem}
.who button{width:auto;min-height:1.5rem;padding:0;border:0;background:none;font-weight:400;text-decoration:underline;text-underline-offset:.15em}
.cards{padding:0;list-style:none;margin:.5rem 0 .75rem}
.cards>li{border:1px solid var(--line);border-radius:.75rem;padding:.75rem 1rem;margin:0 0 .75rem}
.cards p:not(.id){margin:.5rem 0 0}
.may{margin:.25rem 0 0}
.may div{margin:.25rem 0}
.may dt{font-size:1rem;color:var(--ink)}
.may ul{margin:0}
.cards .given>:first-child{margin-top:0}
.beside{border-left:.25rem solid var(--edge);padding-left:.75rem;margin:.5rem 0}
.cards .beside p,.beside ul{margin:0}
.party{display:flex;gap:.75rem;align-items:center}
.party>div{min-width:0}
.party h1{margin:0}
.disc{flex:none;display:inline-grid;place-content:center;width:2.5rem;height:2.5rem;border-radius:50%;color:#fff;font-weight:600;line-height:1}
.disc.mark{background:var(--edge);color:var(--card)}
.disc.done{background:var(--gift);color:var(--card)}
.done::before{content:"";width:.6rem;height:1.15rem;border:solid;border-width:0 .25rem .25rem 0;transform:translateY(-.15rem) rotate(45deg)}
img{background:#fff;border-radius:.25rem}
img.disc{border-radius:.4rem;object-fit:contain}
label .disc{width:2rem;height:2rem;font-size:.8125rem}
${DISCS.map((ground, index) => `.d${index}{background:${ground}}`).join("\n")}
.given{margin-top:.5rem}
.given+.given{border-top:1px solid var(--line);padding-top:.75rem;margin-top:.75rem}
.acts{display:flex;flex-wrap:wrap;gap:0 1.25rem;align-items:center;margin-top:.25rem}
.acts>[open]{flex-basis:100%}
.week{display:flex;gap:.25rem;padding:0;margin:.5rem 0;list-style:none;text-align:center}
.week li{gap:.125rem;flex:1;min-width:0;margin:0;display:flex;flex-direction:column;justify-content:flex-end;font-size:.8125rem}
.bar{height:.2rem;margin:0 15%;border-radius:.2rem;background:var(--line)}
.yes:not(.b0){background:var(--accent)}
.no{background:var(--refusal)}
.week strong{color:var(--refusal)}
${BARS.map((step) => `.b${step}{height:${step / 8}rem}`).join("")}
.ask summary{display:inline-block;font-weight:600;margin:.25rem 0;padding:.25rem 1rem;border:1px solid var(--line);border-radius:.75rem}
.ask form{border:1px solid var(--edge);border-radius:.75rem;padding:.5rem 1rem;margin:.5rem 0}
.danger summary{border-color:var(--refusal);color:var(--refusal)}
.danger form{border-color:var(--refusal)}
.danger button{border-color:var(--refusal);background:var(--refusal);color:var(--card)}
.day{border-top:1px solid var(--line)}
.day>summary{padding:.5rem 0}
.day h3{display:inline;color:var(--ink)}
.day h4{margin-top:.5rem}
.events{padding:0;list-style:none;margin:.25rem 0 .75rem}
.events>li{display:flex;gap:.75rem;margin:.5rem 0}
.events div{min-width:0}
.events p,.events .chain{margin:0}
.time{color:var(--quiet)}
.sign{flex:none;display:inline-grid;place-content:center;width:1.5rem;height:1.5rem;border-radius:50%;background:var(--accent);color:var(--card);font-weight:600;line-height:1}
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
@media(min-width:40rem){body{background:var(--page)}header{border:0;margin-top:.75rem}main{border:1px solid var(--line);border-radius:1rem;padding:1.25rem 2rem .75rem}header,footer{padding:.5rem 2rem}}
@media(min-width:60rem){body:has(.history) :is(header,main,footer){max-width:60rem}.history{display:grid;grid-template-columns:1fr 16rem;gap:3rem}.cards>li{display:grid;grid-template-columns:18rem 1fr;gap:0 1.5rem}.given{grid-column:2;margin-top:0;display:grid;grid-template-columns:1fr auto;gap:0 1rem}.given>*{grid-column:1}.given>:is(.warning,.acts:has([open])){grid-column:1/3}.given>.acts:not(:has([open])){grid-area:1/2/span 6;flex-direction:column;align-items:end;align-self:start;margin:0}}
`;

/** The colours are `#rrggbb`, checked when they were read. */
export const styleOf = ({ light, dark }: SchemeColours): string => `
:root{color-scheme:light dark;${tones({ ...TONES.light, card: `${lightCard}`, page: `${lightPage}`, accent: light })}}
@media(prefers-color-scheme:dark){:root{${tones({ ...TONES.dark, card: `${darkCard}`, page: `${darkPage}`, accent: dark })}}}
${RULES}`;
