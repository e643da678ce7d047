/** Colours, space and type. Every text colour has at least 4.5:1 against every background that it is used on. */
export const TOKENS = `
:root{color-scheme:light dark;
--ground:#f6f7f9;--surface:#fff;--raised:#eef0f4;--line:#dfe3ea;--edge:#848e9d;
--text:#1a2230;--dim:#566173;--accent:#4a4fc4;--on-accent:#fff;--accent-soft:#ecedfb;
--good:#13743f;--good-soft:#e2f4ea;--bad:#b3261e;--bad-soft:#fbe9e7;--warn:#865300;--warn-soft:#fbf0d9;
--good-fill:#2f9e63;--bad-fill:#d9463c;--mark:#6a6fdc;
--s1:.25rem;--s2:.5rem;--s3:.75rem;--s4:1rem;--s5:1.5rem;--s6:2rem;--radius:.5rem;
--body:.875rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
--mono:.8125rem/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;
--small:.8125rem}
@media (prefers-color-scheme:dark){:root{
--ground:#0e1218;--surface:#161b23;--raised:#202733;--line:#2b3341;--edge:#76819a;
--text:#e5e9f0;--dim:#a0aabb;--accent:#a3a8ff;--on-accent:#11142b;--accent-soft:#262a52;
--good:#5fd39a;--good-soft:#143325;--bad:#ff958c;--bad-soft:#3d1b1a;--warn:#efc062;--warn-soft:#372a10;
--good-fill:#38a86c;--bad-fill:#e5594f;--mark:#8489f0}}
`;

/** The navigation. Bull Board has it too, so it uses only its own classes and the tokens. */
export const NAVIGATION_STYLE = `
.u-brand{display:flex;align-items:center;gap:var(--s2);font-weight:650;font-size:1rem;color:var(--text);text-decoration:none}
.u-brand svg{width:1.25rem;height:1.25rem;flex:none;color:var(--accent)}
.u-env{font-size:.6875rem;font-weight:600;letter-spacing:.03em;border-radius:1rem;padding:.0625rem .5rem;background:var(--raised);color:var(--dim)}
.u-env.production{background:var(--warn-soft);color:var(--warn)}
.u-nav ul{list-style:none;margin:0;padding:0;display:grid;gap:.125rem}
.u-nav a{display:block;padding:.375rem .625rem;border-radius:.375rem;color:var(--text);text-decoration:none}
.u-nav a:hover{background:var(--raised)}
.u-nav a[aria-current]{background:var(--accent-soft);color:var(--accent);font-weight:600}
.u-who{display:flex;align-items:center;gap:var(--s2);color:var(--dim);min-width:0}
.u-who>a{color:inherit;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.u-who form{margin:0;flex:none}.u-who button{border-color:var(--line);color:inherit;white-space:nowrap}
`;

const SHELL_STYLE = `
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--text);font:var(--body);overflow-wrap:anywhere}
a{color:var(--accent);text-underline-offset:.15em}a:hover{text-decoration-thickness:.125em}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:.25rem}
.skip{position:absolute;left:-99rem;top:var(--s2);z-index:9;background:var(--surface);padding:var(--s2) var(--s4)}
.skip:focus{left:var(--s2)}
.visually-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
header.u-top{display:grid;grid-template-columns:auto minmax(0,1fr) auto;gap:var(--s2) var(--s3);align-items:center;padding:var(--s3) var(--s4);background:var(--surface);border-bottom:1px solid var(--line)}
.u-start{display:grid;gap:.125rem;justify-items:start}
.u-who{justify-content:flex-end}
.u-search{display:flex;gap:var(--s2);grid-column:1/-1;order:3;margin:0}.u-search input{flex:1}
.u-menu{padding:.25rem .625rem}
.u-nav[popover]{inset:auto;top:3.5rem;right:var(--s3);width:14rem;max-width:calc(100vw - 1.5rem);margin:0;padding:var(--s2);border:1px solid var(--line);border-radius:var(--radius);background:var(--surface);color:var(--text);font:var(--body);box-shadow:0 .5rem 2rem #0004}
main{min-width:0;padding:var(--s4) var(--s4) var(--s6);display:block}
main:focus{outline:none}
h1{font-size:1.25rem;line-height:1.3;margin:0 0 var(--s4);font-weight:650}
h2{font-size:.9375rem;line-height:1.3;margin:var(--s5) 0 var(--s3);font-weight:650}
h3{font-size:.875rem;margin:var(--s4) 0 var(--s2);font-weight:650}
p{margin:0 0 var(--s3)}
.live{display:flex;justify-content:flex-end;align-items:center;gap:var(--s2);color:var(--dim);font-size:var(--small);margin:0 0 var(--s2)}
.live[hidden]{display:none}
@media (min-width:60rem){
.u-frame{display:grid;grid-template:auto 1fr/13.5rem minmax(0,1fr);min-height:100vh}
header.u-top{grid-area:1/1/2/3;display:flex;position:sticky;top:0;z-index:5}
header.u-top .u-start{width:11.5rem;display:flex;align-items:center;gap:var(--s2)}.u-top .u-who{margin-left:auto}
.u-search{order:0;flex:0 1 32rem}.u-menu{display:none}
.u-nav[popover]{grid-area:2/1;display:block;position:sticky;top:3.5rem;align-self:start;right:auto;width:auto;height:auto;max-height:calc(100vh - 3.5rem);overflow:auto;padding:var(--s4) var(--s3);border:0;background:none;box-shadow:none;border-radius:0}
main{grid-area:2/2;padding:var(--s5) var(--s6) var(--s6) var(--s4);max-width:96rem}
}
main.u-bare{max-width:24rem;margin:12vh auto 0;padding:var(--s4)}main.u-bare .card{margin-top:var(--s4);padding:var(--s5)}
@media print{header.u-top,.u-nav,.live,form{display:none!important}}
`;

/** The parts of pages: see parts.ts, form.ts, and the charts. */
const PARTS_STYLE = `
input,select,textarea,button,.button{font:inherit;color:inherit;min-height:2rem;padding:.25rem .625rem;border:1px solid var(--edge);border-radius:.375rem;background:var(--surface);min-width:0;max-width:100%}
input[type=checkbox],input[type=radio]{min-height:0;width:1rem;height:1rem;margin:0;accent-color:var(--accent);flex:none}
::placeholder{color:var(--dim);opacity:1}
button,.button{cursor:pointer;font-weight:550;display:inline-flex;align-items:center;justify-content:center;gap:var(--s2);text-decoration:none}
button:hover,.button:hover{background:var(--raised)}
button:disabled{opacity:.55;cursor:default}
.primary{background:var(--accent);border-color:var(--accent);color:var(--on-accent)}
.primary:hover{background:var(--accent);filter:brightness(1.08)}
.danger{border-color:var(--bad);color:var(--bad)}.danger:hover{background:var(--bad-soft)}
.quiet{border-color:transparent;background:none;color:var(--accent);padding-inline:.375rem}
.copy{min-height:1.5rem;padding:0 .375rem;font-size:.75rem;color:var(--dim);border-color:var(--line);font-weight:500}
.copy[hidden]{display:none}
form.change{display:grid;gap:var(--s3);max-width:34rem;margin:0 0 var(--s4);justify-items:start}
form.change label:not(.check),form.filter label{display:grid;gap:var(--s1);font-weight:550}
form.change label:not(.check){width:100%}form.change label:not(.check)>:is(input,select,textarea){width:100%;font-weight:400}
form.inline{display:inline-flex;flex-wrap:wrap;gap:var(--s2);align-items:center;margin:0}
form.filter{display:flex;flex-wrap:wrap;gap:var(--s3);align-items:end;margin:0 0 var(--s4)}
form.filter label{font-size:var(--small);color:var(--dim);flex:0 1 auto;min-width:0}
form.filter :is(input,select){font-weight:400;color:var(--text);width:13rem}
.columns h3:first-child{margin-top:0}
.button[aria-current]{background:var(--accent-soft);border-color:var(--accent);color:var(--accent)}
label.check{display:flex;min-height:1.5rem;gap:var(--s2);align-items:center}
.hint{color:var(--dim);font-size:var(--small);font-weight:400}.field-fault{color:var(--bad);font-size:var(--small);font-weight:550}
[aria-invalid=true]{border-color:var(--bad)}
.actions{display:flex;flex-wrap:wrap;gap:var(--s2);align-items:center;margin:0 0 var(--s4)}
.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.warning{color:var(--warn)}
.n{text-align:right;font-variant-numeric:tabular-nums}
code,pre,.id{font:var(--mono)}
pre{margin:0 0 var(--s3);padding:var(--s3);background:var(--raised);border-radius:var(--radius);white-space:pre-wrap}
.id{white-space:nowrap;display:inline-flex;gap:var(--s1);align-items:center}
time{white-space:nowrap}
.card{background:var(--surface);border:1px solid var(--line);border-radius:var(--radius);padding:var(--s4);margin:0 0 var(--s4)}
.card>h2:first-child{margin-top:0}.card>:last-child{margin-bottom:0}
.columns>.card{margin:0}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));gap:var(--s4);align-items:start;margin:0 0 var(--s4)}
.columns.three{grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr))}
.badge{display:inline-block;font-size:.75rem;line-height:1.4;font-weight:600;padding:.0625rem .5rem;border-radius:1rem;background:var(--raised);color:var(--text);white-space:nowrap}
.badge.good{background:var(--good-soft);color:var(--good)}.badge.bad{background:var(--bad-soft);color:var(--bad)}.badge.warning{background:var(--warn-soft);color:var(--warn)}
.note{border:1px solid;border-left-width:4px;border-radius:.375rem;padding:var(--s2) var(--s3);margin:0 0 var(--s3)}
.note>:last-child{margin-bottom:0}.note a{color:inherit;font-weight:600}
.note.bad{background:var(--bad-soft)}.note.warning{background:var(--warn-soft)}.note.good{background:var(--good-soft)}
.empty{padding:var(--s5) var(--s4);text-align:center;color:var(--dim);background:var(--surface);border:1px dashed var(--line);border-radius:var(--radius);margin:0 0 var(--s4)}
.empty>:last-child{margin-bottom:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(9.5rem,100%),1fr));gap:var(--s3);margin:0 0 var(--s4)}
.tiles>div{background:var(--surface);border:1px solid var(--line);border-radius:var(--radius);padding:var(--s3) var(--s4)}
.tiles dt{color:var(--dim);font-size:var(--small)}.tiles dd{margin:0;font-size:1.5rem;line-height:1.3;font-weight:600;font-variant-numeric:tabular-nums}
.facts{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:var(--s1) var(--s4);margin:0 0 var(--s4)}
.facts dt{color:var(--dim)}.facts dd{margin:0;min-width:0}
table{border-collapse:separate;border-spacing:0;width:100%;background:var(--surface);border:1px solid var(--line);border-radius:var(--radius);margin:0 0 var(--s4)}
th,td{text-align:left;vertical-align:top;padding:.4375rem var(--s3);border-top:1px solid var(--line)}
/* Links above one another stay 24 pixels apart. */
td>div>div+div{margin-top:.375rem}
thead th{border-top:0;color:var(--dim);font-size:.75rem;font-weight:600;white-space:nowrap}
th.n,td.n{text-align:right;white-space:nowrap}
tbody tr:hover td{background:var(--raised)}
.pager{display:flex;gap:var(--s2);margin:0 0 var(--s4)}
td summary{padding:.25rem 0;white-space:nowrap}td button{white-space:nowrap}.tiles dd .dim{font-size:var(--small)}
.timeline{list-style:none;margin:0 0 var(--s4);padding:0 0 0 var(--s4);border-left:2px solid var(--line)}
.timeline>li{position:relative;margin:0 0 var(--s4)}.timeline p{margin:0 0 var(--s1)}
.timeline>li::before{content:"";position:absolute;left:calc(-1*var(--s4) - 6px);top:.375rem;width:.625rem;height:.625rem;border-radius:50%;background:var(--edge)}
.timeline>li.is-good::before{background:var(--good-fill)}.timeline>li.is-bad::before{background:var(--bad-fill)}
.chart{margin:0 0 var(--s4)}.chart svg,svg.chart{width:100%;height:auto;display:block}
.chart text{fill:var(--dim);font-size:11px;font-family:inherit}
.chart .grid{stroke:var(--line);stroke-width:1}.chart .axis{stroke:var(--edge);stroke-width:1}
.chart .line{fill:none;stroke:var(--mark);stroke-width:2;vector-effect:non-scaling-stroke}.chart .line.second{stroke:var(--dim);stroke-dasharray:4 3}
.chart .good{fill:var(--good-fill)}.chart .bad{fill:var(--bad-fill)}.chart .neutral{fill:var(--mark)}
.chart figcaption,.legend{color:var(--dim);font-size:var(--small);display:flex;flex-wrap:wrap;gap:var(--s1) var(--s4)}
.swatch{display:inline-block;width:.75rem;height:.75rem;border-radius:.125rem;margin-right:var(--s1);vertical-align:-.0625rem;background:var(--mark)}
.swatch.good{background:var(--good-fill)}.swatch.bad{background:var(--bad-fill)}
progress{width:100%;height:.75rem;accent-color:var(--accent)}
@media (max-width:40rem){
table,thead,tbody,tr,td{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tbody tr{padding:var(--s2) 0;border-top:1px solid var(--line)}tbody tr:first-child{border-top:0}
td,td.n{white-space:normal;border:0;padding:.125rem var(--s3);display:grid;grid-template-columns:7.5rem minmax(0,1fr);gap:var(--s2);text-align:left}
td::before{content:attr(data-name);color:var(--dim);font-size:var(--small)}
td:not([data-name])::before{content:none}
form.filter label{flex:1 1 9rem}form.filter :is(input,select){width:100%}
.tiles{grid-template-columns:repeat(auto-fit,minmax(min(8rem,100%),1fr))}
.facts{grid-template-columns:minmax(0,1fr);gap:0}.facts dd{margin-bottom:var(--s2)}
}
`;

export const CONSOLE_STYLE = `${TOKENS}${NAVIGATION_STYLE}${SHELL_STYLE}${PARTS_STYLE}`;
