(() => {
  const EVERY_MS = 10_000;
  const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 });
  const CLOCK = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
  const all = (selector, root = document) => root.querySelectorAll(selector);

  function distance(ms) {
    const [unit, size] = UNITS.find(([, size]) => Math.abs(ms) >= size) ?? [];
    const text = `${Math.floor(Math.abs(ms) / size)} ${unit}`;
    return unit ? (ms > 0 ? `${text} ago` : `in ${text}`) : 'now';
  }

  // Enables what needs a script: local times, and buttons that copy.
  function enable() {
    for (const { dateTime, children } of all('time')) {
      const at = new Date(dateTime);
      children[0].textContent = CLOCK.format(at);
      children[1].textContent = `· ${distance(Date.now() - at)}`;
    }
    for (const button of all('[data-copy]')) button.hidden = !navigator.clipboard;
    for (const { labels } of all('[list]')) {
      const text = labels[0].firstChild;
      text.data = text.data.replace('UTC', 'your time');
    }
  }

  document.addEventListener('click', async ({ target }) => {
    const button = target.closest('[data-copy]');
    if (!button) return;
    const label = button.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = label), 1500);
  });

  // A second click would lose the answer to the first one, such as a new secret. Back in the page, the form can be sent again.
  const allowSending = (isAllowed, form) => all('button', form).forEach((button) => (button.disabled = !isAllowed));
  document.addEventListener('submit', ({ target }) => target.method === 'post' && allowSending(false, target));
  addEventListener('pageshow', () => allowSending(true));

  // The key / focuses the search, unless somebody types.
  document.addEventListener('keydown', (event) => {
    const search = document.querySelector('[type=search]');
    if (!search || event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.activeElement.matches('input, textarea, select')) return;
    event.preventDefault();
    search.focus();
  });

  // A time without a zone is local time, and is sent with its offset.
  document.addEventListener('formdata', ({ target, formData }) => {
    for (const { name, value } of all('[list]', target)) {
      if (!/^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?$/.test(value)) continue;
      const at = new Date(value.length > 10 ? value.replace(' ', 'T') : `${value}T00:00`);
      const shift = at.getTimezoneOffset() * 60_000;
      const offset = new Date(Math.abs(shift)).toISOString().slice(11, 16);
      if (shift === shift)
        formData.set(name, `${value.length > 10 ? value : `${value} 00:00`}${shift > 0 ? '-' : '+'}${offset}`);
    }
  });

  // The values of a chart, for a pointer, a finger and the arrow keys.
  for (const type of ['pointerover', 'pointerdown', 'focusin', 'keydown'])
    document.addEventListener(type, ({ target, key }) => {
      const chart = target.closest?.('figure.chart');
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0;
      if (!chart || (key && !step)) return;
      const points = [...all('.at', chart)];
      const shown = points.findIndex(({ classList }) => classList.contains('is-shown'));
      const point = target.closest('.at') ?? points.at(shown + step);
      if (!point) return;
      points[shown]?.classList.remove('is-shown');
      point.classList.add('is-shown');
      chart.querySelector('output').textContent = point.textContent.trim();
    });

  // The browser shows the address of Bull Board's page, so that it can be reloaded and shared.
  const board = document.querySelector('iframe');
  if (board)
    setInterval(() => {
      const { pathname, search } = board.contentWindow.location;
      const query = new URLSearchParams(search);
      query.delete('board');
      history.replaceState(null, '', query.size ? `${pathname}?${query}` : pathname);
    }, 500);

  // What was done is said once: a page that is reloaded or refreshed later would say it of another state.
  const address = new URL(location);
  address.searchParams.delete('done');
  if (address.href !== location.href) history.replaceState(null, '', address);

  const bar = document.querySelector('.live');
  const [state, button] = bar?.children ?? [];
  const used = new WeakSet();
  const isUsed = (node) => used.has(node) || node.matches?.('form:focus-within, figure:is(:focus-within, :hover)');
  // A refresh leaves forms and charts in use, opened details, ticked boxes and buttons that copy as they are.
  const callbacks = {
    beforeNodeMorphed: (node) => !isUsed(node),
    beforeNodeRemoved: (node) => !isUsed(node),
    beforeAttributeUpdated: (name) => !['open', 'checked', 'hidden'].includes(name),
  };
  document.addEventListener('input', ({ target }) => target.form && used.add(target.form));

  // A row is the same one if its first link is, also if another row comes before it. So the focus stays in its row.
  function nameRows(root) {
    for (const row of all('tbody tr', root)) if (row.querySelector('a')) row.id = row.querySelector('a').href;
  }

  // A text that is written again would be read out again.
  function say(text) {
    if (state.textContent !== text) state.textContent = text;
  }

  let etag = '';
  async function refresh() {
    if (button.value || document.hidden || !getSelection().isCollapsed) return;
    try {
      const answer = await fetch(location, {
        headers: { accept: 'text/html', 'usher-live': '1', 'if-none-match': etag },
        signal: AbortSignal.timeout(EVERY_MS),
      });
      if (button.value) return;
      if (answer.redirected) return location.reload();
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const { activeElement } = document;
        [document, page].forEach(nameRows);
        Idiomorph.morph(document.querySelector('.body'), page.querySelector('.body'), { callbacks });
        etag = answer.headers.get('etag');
        enable();
        activeElement.focus({ preventScroll: true });
      } else if (answer.status !== 304) throw answer;
      say('Updates every 10 s');
    } catch {
      if (!button.value) say('Not updated: this is an older state');
    }
  }

  enable();
  setInterval(enable, EVERY_MS);
  if (!bar) return;
  bar.hidden = false;
  button.addEventListener('click', () => {
    button.value = button.value ? '' : 'paused';
    button.textContent = button.value ? 'Resume' : 'Pause';
    say(button.value ? 'Updates are paused' : 'Updates every 10 s');
  });
  setInterval(refresh, EVERY_MS);
})();
