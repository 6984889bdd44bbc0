/** The style of a report: the colours and type of the people's pages, for pages with tables and maps. */
import { ACCENT, rootColours } from "../../settings/colours.ts";

const WIDTHS = [1, 2, 3, 4, 5, 6].map((step) => `.w${step}{stroke-width:${(0.9 * step + 0.6).toFixed(1)}}`);

export const REPORT_STYLE = `
${rootColours(ACCENT)}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:1rem/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;border-top:.25rem solid var(--accent)}
header,main,footer{max-width:80rem;margin:0 auto;padding:.75rem 1.25rem}
header{display:flex;flex-wrap:wrap;gap:.25rem 2rem;align-items:baseline}
header p{margin:0;font-weight:600;overflow-wrap:anywhere}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem}
a{color:var(--accent);text-underline-offset:.15em}
nav a{padding:.25rem 0;text-decoration:none}
nav a:hover,nav [aria-current]{text-decoration:underline}
nav [aria-current]{font-weight:600;color:var(--ink)}
main{background:var(--card);border:1px solid var(--line);border-radius:1rem;padding:1.25rem 1.5rem 1.5rem}
footer,.hint,.small,th,dt{font-size:.8125rem;color:var(--quiet)}
h1,h2,h3,strong,th{font-weight:600}
h1{font-size:1.5rem;line-height:1.2;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.125rem;line-height:1.25;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:0}
p{margin:.5rem 0}
.hint{margin:.25rem 0 .75rem;max-width:44rem}
code{font:.8125rem/1.4 ui-monospace,"SF Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
.id{display:block;color:var(--quiet)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;margin:1rem 0;padding:0;list-style:none}
.figures li{border:1px solid var(--line);border-radius:.75rem;padding:.625rem .875rem}
.figures strong{display:block;font-size:1.5rem;line-height:1.2;font-variant-numeric:tabular-nums}
.figures span{font-size:.8125rem;color:var(--quiet)}
.drawing{overflow-x:auto;margin:1rem -.5rem;padding:.25rem .5rem}
.map{display:block;max-width:none;height:auto}
.map text{fill:var(--ink);font-family:inherit}
.map .big{font-size:13px;font-weight:600}
.map .small{font-size:11px;fill:var(--quiet)}
.n rect{fill:var(--card);stroke:var(--line);stroke-width:1.5}
.person rect{stroke:var(--accent)}
.target rect{stroke:var(--gift)}
.partner rect{stroke-dasharray:6 3}
.self rect{stroke-width:3}
.map a:hover rect,.map a:focus-visible rect{fill:color-mix(in srgb,var(--accent) 10%,var(--card))}
.e{fill:none;stroke:var(--accent);stroke-opacity:.5}
.e:hover{stroke-opacity:1}
.unused{stroke:var(--quiet);stroke-width:1.2;stroke-dasharray:4 4;stroke-opacity:.6}
${WIDTHS.join("")}
.key{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;padding:0;margin:.5rem 0;list-style:none;font-size:.8125rem;color:var(--quiet)}
.key li::before{content:"";display:inline-block;width:1.75rem;vertical-align:middle;margin-right:.5rem;border-top:4px solid var(--accent)}
.key .never::before{border-top:2px dashed var(--quiet)}
.table{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.5rem 1rem .5rem 0;border-bottom:1px solid var(--line)}
th{white-space:nowrap}
td:first-child{min-width:13rem}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
time{white-space:nowrap;font-variant-numeric:tabular-nums}
.idle{color:var(--edge)}
.cards{padding:0;list-style:none;margin:1rem 0;display:grid;align-items:start;grid-template-columns:repeat(auto-fill,minmax(min(30rem,100%),1fr));gap:1rem}
.cards>li{border:1px solid var(--line);border-radius:.75rem;padding:1rem 1.25rem;min-width:0;overflow-wrap:anywhere}
.cards p{margin:.25rem 0}
.ladder{padding:0;margin:.75rem 0;list-style:none;display:grid;grid-template-columns:repeat(auto-fit,minmax(min(13rem,100%),1fr));gap:.25rem 1.5rem}
.ladder li{display:flex;gap:.625rem;align-items:baseline}
.ladder li::before{content:"";flex:none;width:.4rem;height:.8rem;margin:0 .4rem;border:solid var(--gift);border-width:0 .15rem .15rem 0;transform:translateY(.05rem) rotate(45deg)}
.ladder .no::before{content:"×";width:1.2rem;height:auto;margin:0;border:0;transform:none;color:var(--refusal);font-size:1.25rem;line-height:1;text-align:center}
.ladder .no{font-weight:600}
.change{background:var(--notice);border:1px solid var(--edge);border-radius:.75rem;padding:.625rem 1rem;margin:.75rem 0 0}
.change ul{margin:.25rem 0;padding-left:1.25rem}
.change .hint{margin:0}
.stop{border-left:.25rem solid var(--refusal);padding:.125rem 0 .125rem 1rem;margin:.75rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.5rem;margin:.75rem 0}
dd{margin:0;overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--accent);padding:.25rem 0;margin-top:1rem}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
@media(max-width:40rem){body{background:var(--card)}main{border:0;border-radius:0;padding:.75rem 1.25rem}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
@media print{body{background:none}main{border:0}.e{stroke-opacity:.7}}
`;
