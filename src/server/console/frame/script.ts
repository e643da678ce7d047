/** A refresh that a page makes by itself has this header. */
export const LIVE_HEADER = 'usher-live';

/** Every page works without it: it refreshes a live page, and copies ids. Served from /ops, so that the policy is 'self'. */
export const CONSOLE_SCRIPT = `'use strict';
(() => {
  const LIVE_EVERY_MS = 10000;
  const main = document.querySelector('main');
  const bar = document.querySelector('.live');

  function enable(root) {
    for (const button of root.querySelectorAll('[data-copy]')) button.hidden = false;
  }

  document.addEventListener('click', async ({ target }) => {
    const button = target.closest && target.closest('[data-copy]');
    if (!button) return;
    const label = button.textContent;
    let done = 'Copied';
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      done = copyOld(button.dataset.copy) ? 'Copied' : 'Not copied';
    }
    button.textContent = done;
    setTimeout(() => (button.textContent = label), 1500);
  });

  // Over plain http a browser has no clipboard API.
  function copyOld(text) {
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    const isDone = document.execCommand('copy');
    field.remove();
    return isDone;
  }

  function isBusy() {
    const { activeElement } = document;
    if (activeElement && activeElement !== main && main.contains(activeElement)) return true;
    const selection = getSelection();
    return Boolean(selection && !selection.isCollapsed && main.contains(selection.anchorNode));
  }

  function startLive() {
    const button = bar.querySelector('button');
    const state = bar.querySelector('span');
    let isPaused = false;
    bar.hidden = false;
    button.addEventListener('click', () => {
      isPaused = !isPaused;
      button.textContent = isPaused ? 'Resume' : 'Pause';
      state.textContent = isPaused ? 'Updates are paused' : 'Updates every 10 s';
    });
    setInterval(async () => {
      if (isPaused || document.hidden || isBusy()) return;
      try {
        const answer = await fetch(location.href, { headers: { accept: 'text/html', '${LIVE_HEADER}': '1' } });
        if (answer.redirected) return location.reload();
        if (!answer.ok) throw new Error(String(answer.status));
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const body = page.querySelector('main .body');
        if (isPaused || isBusy() || !body) return;
        main.querySelector('.body').replaceWith(document.importNode(body, true));
        enable(main);
        state.textContent = 'Updates every 10 s';
      } catch {
        state.textContent = 'The server does not answer; shown is an older state';
      }
    }, LIVE_EVERY_MS);
  }

  enable(document);
  if (bar) startLive();
})();
`;
