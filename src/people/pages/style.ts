/** The style of every page. It stands in the page, and its digest in the Content-Security-Policy. */
import type { SchemeColours } from "../../settings/colours.ts";
import { GROUNDS } from "../../settings/colours.ts";

const [lightCard, lightPage] = GROUNDS.light;
const [darkCard, darkPage] = GROUNDS.dark;

/** The colours beside those of the operator, for tests of their contrast too. */
export const TONES = {
  light: { ink: "#1b1f24", quiet: "#4d5662", line: "#d3d9e0", notice: "#fff5dc", edge: "#8f5f00" },
  dark: { ink: "#eceff3", quiet: "#b4bcc8", line: "#3a424c", notice: "#2c2410", edge: "#e3b341" },
} as const;

const tones = (of: Record<string, string>): string =>
  Object.entries(of)
    .map(([name, colour]) => `--${name}:${colour}`)
    .join(";");

/** The colours are `#rrggbb`, checked when they were read. */
export const styleOf = ({ light, dark }: SchemeColours): string => `
:root{color-scheme:light dark;${tones({ ...TONES.light, card: `${lightCard}`, page: `${lightPage}`, accent: light })}}
@media(prefers-color-scheme:dark){:root{${tones({ ...TONES.dark, card: `${darkCard}`, page: `${darkPage}`, accent: dark })}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;overflow-wrap:anywhere;border-top:.3rem solid var(--accent)}
header,main{max-width:40rem;margin:0 auto;padding:1rem 1.25rem}
header p{margin:0;font-weight:600}
main{background:var(--card);padding-bottom:1.5rem}
h1{font-size:1.5rem;line-height:1.3;margin:.5rem 0 .75rem}
h2{font-size:1rem;margin:0 0 .25rem}
p{margin:.75rem 0}
bdi{hyphens:manual}
dl{margin:1.25rem 0;padding:0}
dl div{border-top:1px solid var(--line);padding:.6rem 0}
dt{color:var(--quiet);font-size:.9rem}
dd{margin:0}
a{color:var(--accent);text-underline-offset:.15em}
dd a,p a{display:inline-block;min-height:1.5rem}
form{margin:0}
fieldset{border:1px solid var(--line);border-radius:.5rem;margin:1.5rem 0 1rem;padding:.75rem 1rem .25rem;min-width:0}
legend{float:left;width:100%;padding:0;font-weight:600}
legend+*{clear:both}
label{display:flex;gap:.75rem;align-items:flex-start;padding:.6rem 0;cursor:pointer}
.every{border-top:1px solid var(--line);font-weight:600}
input[type=checkbox]{flex:none;width:1.5rem;height:1.5rem;margin:0;accent-color:var(--accent)}
.hint{color:var(--quiet);font-size:.9rem;margin:0 0 .4rem;padding-top:.25rem}
.warning{background:var(--notice);border:1px solid var(--edge);border-left-width:.4rem;border-radius:.5rem;padding:.75rem 1rem;margin:1rem 0}
.warning p{margin:.25rem 0}
ul,ol{padding-left:1.25rem;margin:.5rem 0}
dd ol{margin:0}
li{margin:.25rem 0}
.choices{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(9rem,100%),1fr));gap:1rem;margin:1.5rem 0 0;padding:0;list-style:none}
.choices li{margin:0;display:grid}
button,.choices a{font:inherit;font-weight:600;width:100%;min-height:3rem;padding:.6rem 1rem;border:2px solid var(--accent);border-radius:.5rem;background:var(--card);color:var(--accent);cursor:pointer;text-align:center;text-decoration:none;display:grid;place-content:center}
button:hover,.choices a:hover{background:var(--page)}
.leave{border-top:1px solid var(--line);margin-top:1.5rem;padding-top:.5rem}
.leave button{width:auto;min-height:2rem;padding:.25rem .5rem;margin-left:-.5rem;border-color:transparent;font-weight:400;text-decoration:underline;text-underline-offset:.15em}
.cards{padding:0;list-style:none}
.cards>li{border:1px solid var(--line);border-radius:.5rem;padding:.75rem 1rem;margin:1rem 0}
.cards h3,.cards p{margin:0}
.cards dl{margin:.5rem 0}
.cards dd ul,.cards ol{margin:0}
main>h2{font-size:1.25rem;margin-top:2rem}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
.days label{justify-content:space-between;flex-wrap:wrap;align-items:center;padding:.35rem 0}
.days button{margin:.5rem 0 .75rem}
input[type=date]{font:inherit;min-height:2.5rem;padding:.25rem .5rem;border:1px solid var(--quiet);border-radius:.5rem;background:var(--card);color:var(--ink);max-width:100%}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
@media(min-width:44rem){header{margin-top:2rem}main{border:1px solid var(--line);border-radius:.75rem;margin-bottom:3rem;padding:1.5rem 2rem 2rem}header{padding:1rem 2rem}}
`;
