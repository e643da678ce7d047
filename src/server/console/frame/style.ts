import { PARTS_STYLE } from './style-parts.js';

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

export const CONSOLE_STYLE = `${TOKENS}${NAVIGATION_STYLE}${SHELL_STYLE}${PARTS_STYLE}`;
