// The page works without this file. It adds updates, readings under the pointer, keys, and forms that send themselves.
const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
document.documentElement.classList.add("js");

// Forms that only look send themselves, and keep what is on the page.
let running;
async function show(url, push) {
  running?.abort();
  running = new AbortController();
  try {
    const response = await fetch(url, { signal: running.signal, headers: { Accept: "text/html" } });
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    if (response.status === 401) return location.reload();
    if (!response.ok) return;
    swap(next);
    if (push) history.replaceState(null, "", url);
  } catch (e) {
    if (e.name !== "AbortError" && e.name !== "TypeError") throw e; // TypeError: the server has gone
  }
}

// swap replaces the parts that are live. What is open stays open, and what is scrolled stays scrolled.
function swap(next) {
  for (const old of all("[data-live]")) {
    const fresh = next.getElementById(old.id);
    if (!fresh || fresh.innerHTML === old.innerHTML) continue;
    const open = all("details", old).map((d) => d.open);
    const scrolled = all(".scroll", old).map((s) => [s.scrollLeft, s.scrollTop]);
    const focused = old.contains(document.activeElement) ? all("a, button, input, summary, .scroll", old).indexOf(document.activeElement) : -1;
    const at = all("[data-row]", old).findIndex((row) => row.classList.contains("at"));
    old.replaceChildren(...document.adoptNode(fresh).childNodes);
    all("details", old).forEach((d, i) => { if (i in open) d.open = open[i]; });
    all(".scroll", old).forEach((s, i) => { if (scrolled[i]) [s.scrollLeft, s.scrollTop] = scrolled[i]; });
    if (focused >= 0) all("a, button, input, summary, .scroll", old)[focused]?.focus({ preventScroll: true });
    if (at >= 0) all("[data-row]", old)[at]?.classList.add("at");
  }
}

function addressOf(form) {
  const data = new FormData(form), url = new URL(form.getAttribute("action"), location.href);
  for (const [name, value] of data) if (value !== "") url.searchParams.append(name, value);
  return url;
}

let typing;
function changed(event) {
  const form = event.target.form;
  if (!form || form.method !== "get" || form.getAttribute("role") === "search") return;
  // A form whose choice changes more than the live parts is sent; the others only swap.
  const swaps = $("[data-live]") && !event.target.matches("select[name=split], select[name=step], [name=color], [name=order], [name=to], [name=by], #filter *");
  clearTimeout(typing);
  typing = setTimeout(() => swaps ? show(addressOf(form), true) : (location.href = addressOf(form)), event.type === "input" ? 200 : 0);
}
document.addEventListener("change", (e) => { if (!e.target.matches("input[type=range], input[type=search]")) changed(e); });
document.addEventListener("input", (e) => {
  const output = e.target.matches("input[type=range]") && $("output", e.target.parentElement);
  if (output) output.value = e.target.value;
  if (e.target.matches("input[type=range], #compare input[type=search]")) changed(e);
});
document.addEventListener("submit", (e) => {
  if (e.target.method !== "get" || e.target.matches("dialog form")) return;
  e.preventDefault();
  location.href = addressOf(e.target);
});

// Readings under the pointer.
let reading;
document.addEventListener("pointermove", (event) => {
  const frame = event.target.closest?.(".frame");
  if (!frame) return hideReading();
  const plot = $(".plot", frame), box = frame.getBoundingClientRect();
  const left = 52, width = box.width - 62, part = (event.clientX - box.left - left) / width;
  if (part < -0.02 || part > 1.02) return hideReading();
  frame.lines ??= JSON.parse(frame.dataset.lines || "[]");
  const found = frame.lines.filter((l) => l.p).map((l) => [l, nearest(l.p, part)]);
  if (!found.length) return;
  const [closest, k] = found.reduce((a, b) => Math.abs(b[0].p[b[1]] - part) < Math.abs(a[0].p[a[1]] - part) ? b : a);
  hideReading();
  const where = closest.p[k];
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "cursor");
  for (const [name, value] of [["x1", `${100 * where}%`], ["x2", `${100 * where}%`], ["y1", "0"], ["y2", "100%"]]) line.setAttribute(name, value);
  plot.append(line);
  const tip = document.createElement("div");
  tip.className = "reading";
  tip.append(row(closest.x[k], ""));
  for (const [l, i] of found) if (Math.abs(l.p[i] - where) < 0.03) tip.append(row(l.n, l.y[i].toPrecision(4).replace(/\.?0+$/, "")));
  const figure = frame.closest("figure");
  figure.append(tip);
  const x = left + where * width;
  tip.style.setProperty("top", `${frame.offsetTop + 8}px`);
  tip.style.setProperty(x > box.width / 2 ? "right" : "left", `${(x > box.width / 2 ? box.width - x : x) + 12}px`);
  reading = [line, tip];
});
document.addEventListener("pointerleave", hideReading);
function hideReading() { reading?.forEach((e) => e.remove()); reading = null; }
function row(name, value) {
  const p = document.createElement("p"), a = document.createElement("span"), b = document.createElement("b");
  a.textContent = name; b.textContent = value; p.append(a, b);
  return p;
}
function nearest(list, at) {
  let low = 0, high = list.length - 1;
  while (high - low > 1) { const mid = (low + high) >> 1; if (list[mid] < at) low = mid; else high = mid; }
  return Math.abs(list[low] - at) <= Math.abs(list[high] - at) ? low : high;
}

// The numbers of a token, where there is no pointer that rests.
document.addEventListener("click", (event) => {
  const token = event.target.closest?.(".tokens > span[title]");
  hideReading();
  if (!token) return;
  const tip = document.createElement("div");
  tip.className = "reading";
  tip.append(row(token.title, ""));
  document.body.append(tip);
  const box = token.getBoundingClientRect();
  tip.style.setProperty("top", `${box.bottom + scrollY + 4}px`);
  tip.style.setProperty("left", `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`);
  reading = [tip];
});

// Updates.
const shown = (document.body.dataset.runs || "").split("\n").filter(Boolean);
const events = new EventSource("./events");
events.onmessage = (event) => {
  const state = JSON.parse(event.data);
  const mine = Object.keys(state.runs ?? {}).some((name) => shown.includes("*") || shown.includes(name));
  if (mine) show(location.href, false); // the first time too: something may have happened since the page was made
  tasks(state.tasks);
  const badge = $("#waiting .badge");
  if (badge) {
    badge.textContent = state.waiting;
    $("#waiting").classList.toggle("primary", state.waiting > 0);
    if (state.waiting > 0 && !$("#verdict") && location.pathname.endsWith("/judge")) location.reload();
  }
  document.documentElement.dataset.live = "yes";
};
events.onerror = () => { delete document.documentElement.dataset.live; };
addEventListener("pagehide", () => events.close());

function tasks(list) {
  const box = $("#tasks");
  box.replaceChildren();
  const task = list[list.length - 1];
  if (!task) return;
  box.append(task.text);
  if (task.total > 0) {
    const bar = document.createElement("progress");
    bar.max = task.total; bar.value = task.done;
    bar.setAttribute("aria-label", task.text);
    box.append(` ${task.done}/${task.total}`, bar);
  }
}

// On a narrow screen the way to the page is scrolled to where one is.
$(".top nav").scrollLeft = 1e6;

// Dark and light.
const themeButton = $("#theme"), keysButton = $("#keys");
themeButton.hidden = keysButton.hidden = false;
function isDark() {
  return document.documentElement.dataset.theme === "dark" || !document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches;
}
function nameTheme() { themeButton.textContent = isDark() ? "Light" : "Dark"; }
function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  document.cookie = `art_dash_theme=${theme}; max-age=31536000; samesite=strict; path=${new URL(".", location.href).pathname}`;
  nameTheme();
}
nameTheme();
themeButton.addEventListener("click", switchTheme);
keysButton.addEventListener("click", () => $("#help").showModal());

// Keys.
function move(by) {
  const rows = all("[data-row]");
  if (!rows.length) return;
  const at = rows.findIndex((r) => r.classList.contains("at"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  rows[at]?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest", inline: "nearest" });
  ($("[data-open]", next) ?? $("input[type=number]", next) ?? next).focus({ preventScroll: true });
}
function rank(key) {
  const row = $(".column.at") ?? document.activeElement.closest?.(".column") ?? $(".column[data-row]");
  const field = row && $("input[type=number]", row);
  if (!field) return;
  field.value = key;
  const rows = all(".column[data-row]");
  rows.forEach((r) => r.classList.remove("at"));
  const next = rows[rows.indexOf(row) + 1];
  if (next) { next.classList.add("at"); next.focus(); } else $("#verdict .primary")?.focus();
}
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("#help").open) return;
  if (e.target.matches("input:not([type=checkbox]):not([type=range]), select, textarea")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const keys = {
    j: () => move(1), k: () => move(-1), t: switchTheme, "?": () => $("#help").showModal(),
    "[": () => $("[rel=prev]")?.click(), "]": () => $("[rel=next]")?.click(),
    "/": () => { const s = $("[data-search]"); s?.matches("a") ? s.click() : s?.focus(); },
    x: () => $("[name=logx]")?.click(), y: () => $("[name=log]")?.click(),
    s: () => ($(".column.at .star button") ?? $(".star button"))?.click(),
    c: () => { const s = $("[data-color]"); if (s) { s.selectedIndex = (s.selectedIndex + 1) % s.length; s.dispatchEvent(new Event("change", { bubbles: true })); } },
  };
  if (/^[1-9]$/.test(e.key) && $("#verdict[data-mode=rank]")) keys[e.key] = () => rank(e.key);
  if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});
