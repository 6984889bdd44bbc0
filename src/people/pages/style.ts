/** The style of every page. It stands in the page, and its digest in the Content-Security-Policy. */
import { rootColours, type SchemeColours } from "../../settings/colours.ts";

/** PAGE-D-37: the grounds of the discs, in both schemes, with white letters. */
export const DISCS =
  "#1f5f8b #8a3b12 #5b3f9e #735193 #3d4db3 #7a5600 #0f6a6a #4d5662 #8c2f5f #55661a #6b4a3a #1a6b34".split(
    " ",
  );

/** The heights of a bar, an eighth of a line each: they are classes, since a page has no style of its own. */
export const BAR_STEPS = 24;
const BARS = Array.from({ length: BAR_STEPS }, (_, index) => index + 1);

const RULES = `*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--card);color:var(--ink);font:1rem/1.4 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;overflow-wrap:anywhere;border-top:.25rem solid var(--accent)}
header,main,footer{max-width:36rem;margin:0 auto;padding:.375rem 1.25rem}
header{border-bottom:1px solid var(--line)}
header p{margin:0;font-weight:600}
header img{display:block;height:2rem;max-width:100%;object-fit:contain}
main{background:var(--card);padding:.625rem 1.25rem .375rem}
footer{display:flex;flex-wrap:wrap;gap:0 2rem;justify-content:space-between}
footer p{margin:0}
h1{font-size:1.375rem;line-height:1.2;margin:0}
h2,.head{font-size:1.125rem;line-height:1.3}
h2{margin:2rem 0 .75rem}
h1 span:not(.unnamed){display:block;font-size:1rem;font-weight:400;margin:.125rem 0}
.unnamed,h3,h4{font-size:1rem;line-height:1.25;margin:0}
h1,h2,h3,h4,strong,.head,legend bdi:first-of-type,button{font-weight:600}
p{margin:.5rem 0}
bdi{hyphens:manual}
code{font:inherit}
footer,.hint,.id,.events .chain,.told,.who,.days,summary,.may dt,details dt,.sign,.key,.week{font-size:.8125rem;line-height:1.4}
footer,.hint,.id,.events .chain,.told,dt{color:var(--quiet)}
.id,.told{display:block;margin:0;font-weight:400}
dl{margin:.5rem 0;padding:0}
details>dl div{border-top:1px solid var(--line);padding:.5rem 0}
dd{margin:0}
ul,ol{padding-left:1.25rem;margin:.25rem 0}
ul{list-style:disc}
li{margin:.125rem 0}
a{color:var(--accent);text-underline-offset:.15em}
p a{display:inline-block;min-height:1.5rem}
main{--gap:1.375rem}
main:has(.parties){--gap:1.125rem}
main:has(.parties .one:nth-of-type(2)){--gap:.625rem}
main:has(.one:nth-of-type(4),.warning,.told){--gap:.5rem}
main:has(.one:nth-of-type(4),.warning,.told) :is(.every,fieldset){padding-block:.375rem;margin-top:.25rem}
main:has(.one:nth-of-type(4)) .chain{font-size:.8125rem}
main:has(.one:nth-of-type(4),.warning) .also{& :is(.disc,.id){display:none}& :is(.party,.party>div,.party~p){display:inline}& .party+.party::before{content:", "}& .party~p::before{content:": "}}
.quote{background:var(--page);border-radius:.75rem;padding:.5rem 1rem}
:is(main>.quote,form>:is(.quote,.parties,.also,.warning,.terms,.choices)),main>.warning{margin:var(--gap) 0 0}
.quote :is(p,h2,.hint){display:block;margin:0}
.chain .told{display:inline}
form{margin:0}
fieldset{border:1px solid var(--line);border-radius:.75rem;margin:.5rem 0 0;padding:.5rem 1rem;min-width:0}
legend{color:var(--quiet);float:left;width:100%;padding:0 0 .125rem}
legend bdi:first-of-type{color:var(--ink)}
legend+*{clear:both}
fieldset .hint{margin:0 0 .25rem}
#tick-hint{display:flex;flex-wrap:wrap;gap:0 1rem;align-items:baseline;color:var(--ink);margin:var(--gap) 0 0}
#tick-hint:not(:has(.head)){font-size:1rem}
.head{display:block;color:var(--ink)}
fieldset fieldset{border-width:1px 0 0;border-radius:0;padding:.5rem 0 0}
.parties{border:0;padding:0}
.parties>legend{padding-bottom:.5rem}
.parties>div{border:1px solid var(--line);border-radius:.75rem}
.parties label{display:grid;grid-template-columns:1.5rem 2rem 1fr;padding:.4375rem 1rem}
.parties label+label{border-top:1px solid var(--line)}
.parties .share{grid-column:2/4}
.share{font-size:.9375rem}
.share>span{display:block}
label{display:flex;gap:.25rem .75rem;align-items:flex-start;padding:.25rem 0;cursor:pointer}
fieldset:has(.one:nth-of-type(4)) label{padding:.125rem 0}
.every{border:1px solid var(--line);border-radius:.75rem;padding:.375rem 1rem;margin:.5rem 0 0}
main>p{margin:.375rem 0 0}
.also,.warning{background:var(--page);border-left:.25rem solid var(--accent);border-radius:.25rem .75rem .75rem .25rem;padding:.5rem 1rem}
.warning{background:var(--notice);border-color:var(--edge)}
:is(.also,.warning)>*{margin:0 0 .25rem}
:is(.also,.warning)>:last-child{margin-bottom:0}
.also ul{padding:0;list-style:none}
.also .party+.party{margin-top:.5rem}
:is(.also,label) .disc{width:2rem;height:2rem;font-size:.8125rem}
.terms>*{margin:.25rem 0 0}
.whole{white-space:nowrap}
input[type=checkbox]{appearance:none;flex:none;width:1.5rem;height:1.5rem;margin:0;border:1.5px solid var(--quiet);border-radius:.375rem;background:var(--card);display:grid;place-content:center}
input[type=checkbox]::before{width:.45rem;height:.85rem;border:solid var(--card);border-width:0 .2rem .2rem 0;transform:translateY(-.1rem) rotate(45deg)}
:is(input[type=checkbox]:checked,form:has([name=all]:checked) :is([name=scope],[name=agent],[name=detail])){background:var(--accent);border-color:var(--accent)}
:is(input[type=checkbox]:checked,form:has([name=all]:checked) :is([name=scope],[name=agent],[name=detail]))::before{content:""}
form:has([name=all]:checked) label:has([name=scope],[name=agent],[name=detail]){pointer-events:none}
summary{color:var(--accent);cursor:pointer;padding:.25rem 0;min-height:1.5rem}
.limit{display:block;font-size:.9375rem}
.tag{color:var(--edge)}
.choices{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(9rem,100%),1fr));gap:.75rem;margin:.5rem 0;padding:0;list-style:none}
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
.cards{padding:0;list-style:none;margin:0 0 .75rem}
.cards>li{border:1px solid var(--line);border-radius:.75rem;padding:.75rem 1rem;margin:0 0 .75rem}
.cards p{margin:.25rem 0 0}
.cards .id{margin:0}
.may{margin:.25rem 0 0}
.may div{margin:.25rem 0 0}
.may strong{font-weight:400}
.may ul{margin:0;padding:0;list-style:none}
.party{display:flex;gap:.75rem;align-items:center}
.party>div{min-width:0}
.disc{flex:none;display:inline-grid;place-content:center;width:2.5rem;height:2.5rem;border-radius:50%;color:#fff;font-weight:600;line-height:1}
.disc.mark{background:var(--edge);color:var(--card)}
.disc.done{background:var(--gift);color:var(--card)}
.done::before{content:"";width:.6rem;height:1.15rem;border:solid;border-width:0 .25rem .25rem 0;transform:translateY(-.15rem) rotate(45deg)}
img{background:#fff;border-radius:.25rem}
img.disc{border-radius:.4rem;object-fit:contain}
${DISCS.map((ground, index) => `.d${index}{background:${ground}}`).join("\n")}
.given{margin-top:.5rem}
.given>:first-child,.may>:first-child{margin-top:0}
.given+.given{border-top:1px solid var(--line);padding-top:.75rem;margin-top:.75rem}
.given .also{border-color:var(--edge);margin:.5rem 0 0;font-size:.8125rem}
.acts{display:flex;flex-wrap:wrap;gap:0 1.25rem;align-items:center;margin-top:.5rem}
.acts>[open]{flex-basis:100%}
.week{display:flex;gap:.25rem;padding:0;margin:.5rem 0;list-style:none;text-align:center}
.week li{gap:.125rem;flex:1;min-width:0;margin:0;display:flex;flex-direction:column;justify-content:flex-end}
.bar{height:.2rem;margin:0 15%;border-radius:.2rem;background:var(--line)}
.yes:not(.b0){background:var(--accent)}
.no{background:var(--refusal)}
.week strong{color:var(--refusal)}
.key{display:flex;gap:.5rem;align-items:baseline;margin:.25rem 0}
.key::before{content:"";flex:none;width:.75rem;height:.75rem;border-radius:.2rem;background:var(--accent)}
.key+.key::before{background:var(--refusal)}
${BARS.map((step) => `.b${step}{height:${step / 8}rem}`).join("")}
.ask summary{display:inline-block;font-weight:600;margin:.25rem 0;padding:.25rem 1rem;border:1px solid var(--line);border-radius:.75rem}
.ask form{border:1px solid var(--edge);border-radius:.75rem;padding:.5rem 1rem;margin:.5rem 0}
.danger summary{border-color:var(--refusal);color:var(--refusal)}
.danger form{border-color:var(--refusal)}
.danger button{border-color:var(--refusal);background:var(--refusal);color:var(--card)}
.day{border-top:1px solid var(--line)}
.day>summary{padding:.5rem 0}
.day h3{display:inline;color:var(--ink)}
.day :is(h4,h4+.id){display:inline-block;margin-right:.5rem}
.day h4{margin-top:.5rem}
.events{padding:0;list-style:none;margin:.25rem 0 .75rem}
.events>li{display:grid;grid-template-columns:5.5rem 1fr;gap:0 .75rem;align-items:baseline;margin:.5rem 0}
.events>li>div{grid-column:1/3;min-width:0}
.events :is(p,.chain){margin:0}
.events div>p:first-child{font-size:1rem;color:var(--ink)}
.events div>p:first-child::first-letter{text-transform:uppercase}
.time{color:var(--quiet)}
.sign{text-align:center;font-weight:600;border-radius:.375rem;color:var(--quiet);background:color-mix(in srgb,currentColor 10%,var(--card))}
.access{color:var(--accent)}
.gift{color:var(--gift)}
.refusal{color:var(--refusal)}
.ending{color:var(--edge)}
.days{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end;padding-bottom:.75rem}
.days label{flex-direction:column;gap:0;padding:0}
.days button{width:auto;min-height:2.5rem;padding:.25rem 1.5rem}
input[type=date]{font:inherit;min-height:2.5rem;padding:.25rem .5rem;border:1px solid var(--quiet);border-radius:.5rem;background:var(--card);color:var(--ink);max-width:100%}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
@media(min-width:40rem){body{background:var(--page)}header{border:0;margin-top:.5rem}main{border:1px solid var(--line);border-radius:1rem;padding:1rem 2rem .75rem}header,footer{padding:.5rem 2rem}}
@media(min-width:60rem){.key{display:inline-flex;margin-right:1.5rem}body:has(.day,.cards) :is(header,main,footer){max-width:60rem}.cards>li{display:grid;grid-template-columns:18rem 1fr;gap:0 1.5rem}.given{grid-column:2;margin-top:0;display:grid;grid-template-columns:1fr auto;gap:0 1rem}.given>*{grid-column:1}.given.job{grid-column:1/3;margin-top:.75rem}.job>.may{display:grid;grid-template-columns:repeat(3,1fr);gap:0 1.5rem;grid-column:1/3}.job>.may>div{margin:0}.given>:is(.also,.acts:has([open])){grid-column:1/3}.given>.acts:not(:has([open])){grid-area:1/2/span 4;flex-direction:column;align-items:end;align-self:start;margin:0}.events>li{grid-template-columns:5.5rem 9rem 1fr}.events>li>div{grid-column:3}}
`;

/** The colours are `#rrggbb`, checked when they were read. */
export const styleOf = (colours: SchemeColours): string => `
${rootColours(colours)}
${RULES}`;
