/** What all pages of Usher share, the operator's and those for browsers of resource owners. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--line:#8884;--good:#2a8f4f;--bad:#cc3d3d;--soft:#8882}
*{box-sizing:border-box}
body{margin:0 auto;max-width:70rem;padding:1rem;font:1rem/1.45 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .5rem}
header{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:baseline}
input{flex:1;min-width:0;font:inherit;padding:.5rem}button{font:inherit;padding:.5rem 1rem;cursor:pointer}
.note{border-left:4px solid var(--bad);padding:.5rem .8rem;background:var(--soft)}
`;
