// Keeps an open page of the console current, and adds local times to those in UTC. The server reports changes by events; then the
// page itself is loaded again, and the parts marked with `data-live` take over the differences. Nothing here makes markup of text:
// the browser parses the loaded page as a document of its own, where no script runs. Without this script a page has to be
// reloaded, and is the same otherwise but for local times and the choice of a file in a form.
'use strict';
(() => {
  const MIN_PAUSE = 250; // Milliseconds between two loads, and at least REST times as long as the last one took.
  const REST = 4;
  const MAX_LOAD = 20000; // A load that takes longer is given up.
  const SILENCE = 30000; // The server sends something every ten seconds.
  const MAX_RETRY = 30000;
  const GUARD = 700; // After a change under the pointer, a click on a decision meant what was there before.
  const ARRIVAL = 400; // The second click of a double click meant the page before.

  // Adds the time of this place behind each time in UTC. A page that is loaded again gets them too, before it is compared.
  const two = (number) => String(number).padStart(2, '0');
  const localize = (page) => {
    for (const time of page.querySelectorAll('time[datetime]')) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) continue;
      const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
      const here = page.createElement('span'), clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
      here.className = 'local';
      here.textContent = ' ' + (time.dateTime.startsWith(day) ? '' : day + ' ') + clock + ' local';
      time.after(here);
    }
  };
  localize(document);

  // A chosen file fills its field as base64, and is not sent itself.
  const MAX_FILE = 700000, MAX_SENT = 1000000; // A form has at most 1 MiB.
  for (const part of document.querySelectorAll('[data-file]')) {
    const field = document.getElementById(part.dataset.file), input = part.querySelector('input');
    const report = (text) => { part.querySelector('[role=status]').textContent = text; };
    part.hidden = !field;
    input.onchange = () => {
      const [file] = input.files, reader = new FileReader();
      if (!file) return;
      if (file.size > MAX_FILE) { input.value = ''; report('The file has more than 700,000 bytes.'); return; }
      reader.onload = () => {
        const content = reader.result.split(',')[1] || '';
        if (input.files[0] !== file) return;
        if (encodeURIComponent(content).length > MAX_SENT) { input.value = ''; report('The file is too large for a form.'); return; }
        field.value = content;
        report(file.size + ' bytes');
      };
      reader.onerror = () => report('The file cannot be read.');
      reader.readAsDataURL(file);
    };
  }

  const { events: address } = document.body.dataset;
  const state = document.getElementById('live');
  const spoken = document.getElementById('spoken');
  const badge = document.getElementById('waiting');
  if (!address || !state || !window.EventSource) return;

  let shown = document.body.dataset.revision; // Revision of the page as it is now.
  let stream, silence, again, retry = 1000;
  let loading = false, stale = false, timer, next = 0;
  let waiting = Number(badge.dataset.count), lost = false, kept = false;
  let failures = 0;
  let pointer, guarded = performance.now() + ARRIVAL; // Until then, no decision is meant.

  const say = (text) => { spoken.textContent = text; };
  const guard = (time) => { guarded = Math.max(guarded, performance.now() + time); };
  const under = () => pointer && document.elementFromPoint(pointer.x, pointer.y);

  // Shows whether the page is current, and offers to reload one of which a part in use was not replaced.
  const mark = (word, tone) => {
    const before = under();
    draw(word, tone);
    if (under() !== before) guard(GUARD);
  };
  const draw = (word, tone) => {
    state.className = 'state ' + tone;
    if (!kept || tone === 'off') { state.textContent = word; return; }
    if (state.querySelector('a')) return;
    const link = document.createElement('a');
    link.href = location.href;
    link.textContent = 'reload';
    state.replaceChildren('new content: ', link);
    say('New content. Reload the page to see it.');
  };

  // Connection: while the page is in sight, and again some time after it is lost.
  const connect = () => {
    clearTimeout(again);
    if (stream || document.hidden) return;
    stream = new EventSource(address);
    stream.onopen = () => {
      retry = 1000;
      if (lost) say('Live again.');
      lost = false;
      listen();
      mark('live', 'on');
    };
    stream.onerror = lose;
    stream.addEventListener('beat', listen);
    stream.addEventListener('state', (event) => {
      listen();
      const news = JSON.parse(event.data);
      count(news.waiting);
      if (news.revision !== shown) { stale = true; schedule(); }
    });
  };
  const close = () => {
    clearTimeout(silence); clearTimeout(timer); clearTimeout(again);
    timer = undefined;
    if (stream) stream.close();
    stream = undefined;
  };
  const lose = () => {
    close();
    if (!lost) say('Not live: the console cannot be reached, or too many of its pages are open.');
    lost = true;
    mark('not live', 'off');
    if (!document.hidden) again = setTimeout(connect, retry);
    retry = Math.min(2 * retry, MAX_RETRY);
  };
  const listen = () => { clearTimeout(silence); silence = setTimeout(lose, SILENCE); };

  // The number of calls that wait is on every page.
  const count = (number) => {
    if (number > waiting) say(number === 1 ? 'One call waits for an answer.' : number + ' calls wait for an answer.');
    waiting = number;
    const before = under();
    badge.textContent = number + ' waiting';
    badge.hidden = number === 0;
    if (under() !== before) guard(GUARD);
  };

  // Loads: one at a time, and with pauses, however many changes there are.
  const schedule = () => {
    if (loading || timer || document.hidden || !document.querySelector('[data-live]')) return;
    timer = setTimeout(load, Math.max(0, next - performance.now()));
  };
  const load = () => {
    timer = undefined; loading = true; stale = false;
    const begun = performance.now(), request = new XMLHttpRequest();
    request.open('GET', location.href.split('#')[0]);
    request.responseType = 'document';
    request.timeout = MAX_LOAD;
    request.onloadend = () => {
      loading = false;
      const now = performance.now();
      next = now + Math.max(MIN_PAUSE, REST * (now - begun));
      if (request.status === 200 && request.response) {
        failures = 0;
        apply(request.response);
      } else {
        failures += 1;
        stale = true;
        next = now + Math.min(1000 * 2 ** failures, MAX_RETRY);
        mark('not live', 'off');
      }
      if (stale) schedule();
    };
    request.send();
  };

  const apply = (page) => {
    localize(page);
    const before = under();
    let changed = false;
    kept = false;
    for (const part of document.querySelectorAll('[data-live]')) {
      const fresh = page.getElementById(part.id);
      if (fresh) changed = merge(part, fresh) || changed; else kept = true;
    }
    shown = page.body.dataset.revision;
    if (changed && (!pointer || under() !== before)) guard(GUARD);
    mark('live', 'on');
  };

  // A part of a form that has the focus or a changed field stays as it is.
  const changedField = (field) => field.type === 'checkbox' || field.type === 'radio' ? field.checked !== field.defaultChecked
    : field.tagName === 'SELECT' ? !([...field.options].find((one) => one.defaultSelected) || field.options[0] || {}).selected
    : field.type !== 'hidden' && field.value !== field.defaultValue;
  const inUse = (node) => node.nodeType === 1 && ((node.contains(document.activeElement) && document.activeElement.closest('form'))
    || [...node.querySelectorAll('input, textarea, select')].some(changedField));

  // Text that is equal for equal nodes, whether their details are open or not.
  const key = (node) => {
    if (node.nodeType !== 1) return node.nodeType + (node.nodeValue || '');
    if (node.tagName !== 'DETAILS' && !node.querySelector('details[open]')) return node.outerHTML;
    const copy = node.cloneNode(true);
    for (const one of [copy, ...copy.querySelectorAll('details')]) one.removeAttribute('open');
    return copy.outerHTML;
  };
  // Elements of which the content is compared in its turn: focus, selection and open details in them stay.
  const alike = (one, other) => one.nodeType === 1 && one.tagName === other.tagName && !/^(pre|form|svg)$/i.test(one.tagName)
    && one.children.length > 0 && other.children.length > 0 && attributes(one) === attributes(other);
  const attributes = (node) => [...node.attributes].filter((it) => it.name !== 'open').map((it) => it.name + '=' + it.value).join('\n');

  // Gives a node the children of another one, and keeps those that are equal where they are. Returns true if any differed.
  const merge = (node, other) => {
    const old = [...node.childNodes], fresh = [...other.childNodes], keys = fresh.map(key), wanted = new Set(keys);
    const oldKeys = old.map(key), places = new Map();
    oldKeys.forEach((it, at) => places.has(it) ? places.get(it).push(at) : places.set(it, [at]));
    let at = 0, changed = false;
    const drop = () => {
      if (inUse(old[at])) kept = true; else { old[at].remove(); changed = true; }
      at += 1;
    };
    fresh.forEach((one, index) => {
      const equal = (places.get(keys[index]) || []).find((place) => place >= at);
      if (equal !== undefined) {
        while (at < equal) drop();
        at += 1;
        return;
      }
      const candidate = at < old.length && !wanted.has(oldKeys[at]) ? old[at] : undefined;
      if (candidate && alike(candidate, one)) {
        changed = merge(candidate, one) || changed;
        at += 1;
        return;
      }
      if (candidate && inUse(candidate)) { kept = true; at += 1; return; }
      node.insertBefore(document.adoptNode(one), old[at] || null);
      changed = true;
      if (candidate) drop();
    });
    while (at < old.length) drop();
    return changed;
  };

  // A decision that moved under the pointer is not meant. Keys act on what has the focus, which does not move.
  addEventListener('pointermove', (event) => { pointer = { x: event.clientX, y: event.clientY }; }, { passive: true });
  document.addEventListener('click', (event) => {
    if (!event.target.closest('form[method=post]:not(.try)')) return;
    if (event.detail === 0 || performance.now() > guarded) { say(''); return; }
    event.preventDefault();
    event.stopPropagation();
    say('The page has just changed. Look at it, and click again.');
  }, true);

  document.addEventListener('visibilitychange', () => { if (document.hidden) close(); else { retry = 1000; connect(); } });
  addEventListener('pagehide', close);
  addEventListener('pageshow', () => { guard(ARRIVAL); connect(); });
})();
